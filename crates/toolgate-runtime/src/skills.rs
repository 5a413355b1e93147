//! Where skills lie, and what loading one does to a session (C-14): its list of tools becomes a ceiling, or, for the
//! user's own skills and where configuration says so, an approval given beforehand.

mod script;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

use toolgate_config::Settings;
use toolgate_contract::{
    Access, AllowedTools, DirectoryEntry, EntryKind, ErrorCode, Files, HiddenPaths, LaunchSpec, SkillCandidate,
    SkillOwner, SkillScript, Skills, ToolError, WorkspacePath,
};
use toolgate_policy::Ceiling;

use toolgate_changes::WorkspaceChanges;

/// The longest `SKILL.md`, in bytes.
const MOST_BYTES: u64 = 256 * 1024;
/// Files of a skill that are named.
const MOST_FILES: usize = 200;
/// Skills on one shelf.
const MOST_SKILLS: usize = 500;

/// A directory of skills.
#[derive(Clone)]
pub struct SkillDirectory {
    /// Whose it is.
    pub shelf: SkillOwner,
    /// Reaches it.
    pub files: Arc<dyn Files>,
    /// Where it is beneath those.
    pub place: WorkspacePath,
    /// Where it is, as a person would look for it.
    pub path: String,
    /// Where it is on this machine, with no links on the way.
    pub directory: PathBuf,
    /// Whether policy says what may be seen of it. Of our own state directory it says that of everything.
    pub is_veiled: bool,
}

/// What the skills that a session has loaded do to it.
#[derive(Default)]
pub(crate) struct ActiveSkills {
    ceilings: Mutex<Vec<Ceiling>>,
    approved: Mutex<Vec<String>>,
}

impl ActiveSkills {
    pub(crate) fn ceilings(&self) -> Vec<Ceiling> {
        self.ceilings.lock().clone()
    }

    /// The same skills, for a session that goes its own way from here.
    pub(crate) fn copied(&self) -> Self {
        let approved = self.approved.lock().clone();
        Self { ceilings: Mutex::new(self.ceilings()), approved: Mutex::new(approved) }
    }

    /// Whether a skill has approved every call of this tool.
    pub(crate) fn approves(&self, tool: &str) -> bool {
        self.approved.lock().iter().any(|name| name == tool)
    }
}

/// Skills for one call.
pub(crate) struct SkillLoader {
    pub(crate) skill_directories: Arc<[SkillDirectory]>,
    pub(crate) hidden_paths: Arc<dyn HiddenPaths>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) active: Arc<ActiveSkills>,
    /// Gives scripts directories of their own.
    pub(crate) changes: Arc<WorkspaceChanges>,
    pub(crate) run: String,
}

impl Skills for SkillLoader {
    fn directories(&self) -> Result<Vec<SkillCandidate>, ToolError> {
        let mut directories: Vec<SkillCandidate> = Vec::new();
        for shelf in self.skill_directories.iter() {
            for directory in self.on(shelf)? {
                if directories.iter().all(|known| known.name != directory.name) {
                    directories.push(directory);
                }
            }
        }
        Ok(directories)
    }

    fn launch_spec(&self, script: &SkillScript) -> Result<LaunchSpec, ToolError> {
        self.starter(script)
    }

    fn activate(&self, directory: &SkillCandidate, tools: Vec<String>) -> AllowedTools {
        if directory.shelf == SkillOwner::User && self.settings.allowed_tools == AllowedTools::Approval {
            self.active.approved.lock().extend(tools);
            return AllowedTools::Approval;
        }
        let ceiling = Ceiling { source: format!("skill {}", directory.name), tools };
        let mut ceilings = self.active.ceilings.lock();
        if !ceilings.contains(&ceiling) {
            ceilings.push(ceiling);
        }
        AllowedTools::Ceiling
    }
}

impl SkillLoader {
    fn on(&self, shelf: &SkillDirectory) -> Result<Vec<SkillCandidate>, ToolError> {
        let entries = match shelf.files.entries(&shelf.place) {
            Err(error) if matches!(error.code, ErrorCode::NotFound | ErrorCode::NotAFile) => return Ok(Vec::new()),
            other => other?,
        };
        let directories = entries.into_iter().filter(|entry| self.may_be_skill(shelf, entry));
        Ok(directories.take(MOST_SKILLS).filter_map(|entry| self.directory(shelf, entry.name, &entry.place)).collect())
    }

    fn may_be_skill(&self, shelf: &SkillDirectory, entry: &DirectoryEntry) -> bool {
        entry.kind == EntryKind::Directory
            && !self.settings.denied_skills.contains(&entry.name)
            && !self.hides(shelf, &entry.place)
    }

    /// A directory with a `SKILL.md` in it; what else is wrong with it is for the tool to say.
    fn directory(&self, shelf: &SkillDirectory, name: String, place: &WorkspacePath) -> Option<SkillCandidate> {
        let file = beneath(place, "SKILL.md");
        let text = match shelf.files.content(&file, MOST_BYTES) {
            _ if self.hides(shelf, &file) => return None,
            Ok(None) => return None,
            Ok(Some(content)) if content.is_link() => Err(unusable(&name, "its SKILL.md is a link")),
            Ok(Some(content)) => {
                String::from_utf8(content.bytes.to_vec()).map_err(|_| unusable(&name, "its SKILL.md is not UTF-8 text"))
            }
            Err(error) => Err(error),
        };
        let mut files = Vec::new();
        self.list(shelf, place, "", &mut files);
        Some(SkillCandidate { path: format!("{}/{name}", shelf.path), name, shelf: shelf.shelf, text, files })
    }

    /// The other files of a skill. What can't be listed is left out: it can't be used either.
    fn list(&self, shelf: &SkillDirectory, place: &WorkspacePath, within: &str, files: &mut Vec<String>) {
        for entry in shelf.files.entries(place).unwrap_or_default() {
            let path = if within.is_empty() { entry.name } else { format!("{within}/{}", entry.name) };
            match entry.kind {
                _ if files.len() == MOST_FILES || self.hides(shelf, &entry.place) => {}
                EntryKind::Directory if path.split('/').count() < 4 => self.list(shelf, &entry.place, &path, files),
                EntryKind::File if path != "SKILL.md" => files.push(path),
                _ => {}
            }
        }
    }

    fn hides(&self, shelf: &SkillDirectory, place: &WorkspacePath) -> bool {
        shelf.is_veiled && self.hidden_paths.hides(Access::Read, place)
    }
}

fn beneath(place: &WorkspacePath, name: &str) -> WorkspacePath {
    let path = if place.path.is_empty() { name.to_owned() } else { format!("{}/{name}", place.path) };
    WorkspacePath { root: place.root, path }
}

fn unusable(name: &str, why: &str) -> ToolError {
    ToolError::new(ErrorCode::IoError, format!("The skill `{name}` can't be used: {why}."))
}
