//! Directories of skills, and what loading a skill does to a session: its list of tools becomes a ceiling, or, for the
//! user's own skills and where configuration says so, an approval given beforehand.

mod script;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use toolgate_config::Settings;
use toolgate_contract::{
    Access, AllowedTools, DirectoryEntry, EntryKind, ErrorCode, Files, HiddenPaths, LaunchSpec, SkillCandidate,
    SkillOrigin, SkillOwner, SkillScript, Skills, ToolError, WorkspacePath,
};
use toolgate_policy::Ceiling;

use toolgate_changes::WorkspaceChanges;
use toolgate_journal::{SkillLimit, SkillLimits};

/// The largest `SKILL.md`, in bytes.
const MAX_SKILL_BYTES: u64 = 256 * 1024;
/// The largest other file of a skill that is shown, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The largest number of files of a skill that are listed.
const MAX_FILES: usize = 200;
/// The largest number of skills in one directory.
const MAX_SKILLS: usize = 500;

/// A directory of skills.
#[derive(Clone)]
pub struct SkillDirectory {
    /// Who provides the skills.
    pub owner: SkillOwner,
    /// Access to the directory.
    pub files: Arc<dyn Files>,
    /// Its path relative to `files`.
    pub place: WorkspacePath,
    /// Its path as shown to a person.
    pub path: String,
    /// Its absolute path on this machine, without symbolic links.
    pub directory: PathBuf,
    /// Whether policy's hidden paths apply to it. Toolgate's own state directory is hidden completely, so they don't
    /// apply there.
    pub applies_hidden_paths: bool,
}

/// What the skills that a session has loaded allow and limit.
#[derive(Default)]
pub(crate) struct ActiveSkills {
    limits: Mutex<Vec<SkillLimit>>,
    approved: Mutex<Vec<String>>,
    /// Where limits are stored for the next program of the session; none if it ends with this one.
    stored: Option<SkillLimits>,
}

impl ActiveSkills {
    pub(crate) fn ceilings(&self) -> Vec<Ceiling> {
        self.limits.lock().iter().map(ceiling).collect()
    }

    /// The limits of earlier programs of the session, where those of this one will be stored too.
    pub(crate) fn restored(stored: SkillLimits, now: Timestamp) -> Result<Self, ToolError> {
        let limits = Mutex::new(stored.read(now)?);
        Ok(Self { limits, approved: Mutex::default(), stored: Some(stored) })
    }

    /// A copy for another session, which loads skills independently from here on.
    pub(crate) fn copied(&self) -> Self {
        let (limits, approved) = (self.limits.lock().clone(), self.approved.lock().clone());
        Self { limits: Mutex::new(limits), approved: Mutex::new(approved), stored: None }
    }

    /// Limits the session to a skill's tools; on disk before it applies.
    fn limit(&self, limit: SkillLimit, now: Timestamp) -> Result<(), ToolError> {
        if let Some(stored) = &self.stored {
            stored.add(&limit, now)?;
        }
        let mut limits = self.limits.lock();
        limits.retain(|known| !known.is_same(&limit));
        limits.push(limit);
        Ok(())
    }

    /// Whether a skill has approved every call of this tool.
    pub(crate) fn approves(&self, tool: &str) -> bool {
        self.approved.lock().iter().any(|name| name == tool)
    }
}

/// Loads skills for one call.
pub(crate) struct SkillLoader {
    pub(crate) skill_directories: Arc<[SkillDirectory]>,
    pub(crate) hidden_paths: Arc<dyn HiddenPaths>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) active: Arc<ActiveSkills>,
    /// Provides private directories for scripts.
    pub(crate) changes: Arc<WorkspaceChanges>,
    pub(crate) run: String,
    pub(crate) now: Timestamp,
    /// When the limits of skills that are loaded now end; none if they last as long as the session.
    pub(crate) until: Option<Timestamp>,
}

impl Skills for SkillLoader {
    fn directories(&self) -> Result<Vec<SkillCandidate>, ToolError> {
        let mut directories: Vec<SkillCandidate> = Vec::new();
        for skills in self.skill_directories.iter() {
            for directory in self.candidates_in(skills)? {
                if directories.iter().all(|known| known.name != directory.name) {
                    directories.push(directory);
                }
            }
        }
        Ok(directories)
    }

    fn file(&self, skill: &str, path: &str) -> Result<Vec<u8>, ToolError> {
        let missing = || ToolError::not_found(&format!("{skill}/{path}"));
        // Of two skills with the same name the first one counts, as in the list.
        for skills in self.skill_directories.iter() {
            if let Some(found) = self.candidates_in(skills)?.into_iter().find(|found| found.name == skill) {
                if !found.files.iter().any(|listed| listed == path) {
                    return Err(missing());
                }
                let content = skills.files.content(&skills.place.join(skill).join(path), MAX_FILE_BYTES)?;
                let content = content.filter(|content| !content.is_link());
                return content.map(|content| content.bytes.to_vec()).ok_or_else(missing);
            }
        }
        Err(missing())
    }

    fn launch_spec(&self, script: &SkillScript) -> Result<LaunchSpec, ToolError> {
        self.starter(script)
    }

    fn activate(&self, directory: &SkillCandidate, tools: Vec<String>) -> Result<AllowedTools, ToolError> {
        if directory.owner == SkillOwner::User && self.settings.allowed_tools == AllowedTools::Approval {
            self.active.approved.lock().extend(tools);
            return Ok(AllowedTools::Approval);
        }
        let limit = SkillLimit { skill: directory.name.clone(), tools, until: self.until };
        self.active.limit(limit, self.now)?;
        Ok(AllowedTools::Ceiling)
    }
}

impl SkillLoader {
    /// Where the skill of this name comes from; none if there is none.
    pub(crate) fn origin(&self, name: &str) -> Option<SkillOrigin> {
        let found = self.directories().ok()?.into_iter().find(|found| found.name == name)?;
        Some(SkillOrigin { name: found.name, owner: found.owner, path: found.path })
    }

    fn candidates_in(&self, skills: &SkillDirectory) -> Result<Vec<SkillCandidate>, ToolError> {
        let entries = match skills.files.entries(&skills.place) {
            Err(error) if matches!(error.code, ErrorCode::NotFound | ErrorCode::NotAFile) => return Ok(Vec::new()),
            other => other?,
        };
        let directories = entries.into_iter().filter(|entry| self.may_be_skill(skills, entry));
        Ok(directories.take(MAX_SKILLS).filter_map(|entry| self.directory(skills, entry.name, &entry.place)).collect())
    }

    fn may_be_skill(&self, skills: &SkillDirectory, entry: &DirectoryEntry) -> bool {
        entry.kind == EntryKind::Directory
            && !self.settings.denied_skills.contains(&entry.name)
            && !self.hides(skills, &entry.place)
    }

    /// A directory with a `SKILL.md`; the tool reports anything else that is wrong with it.
    fn directory(&self, skills: &SkillDirectory, name: String, place: &WorkspacePath) -> Option<SkillCandidate> {
        let file = place.join("SKILL.md");
        let text = match skills.files.content(&file, MAX_SKILL_BYTES) {
            _ if self.hides(skills, &file) => return None,
            Ok(None) => return None,
            Ok(Some(content)) if content.is_link() => Err(unusable(&name, "its SKILL.md is a symbolic link")),
            Ok(Some(content)) => {
                String::from_utf8(content.bytes.to_vec()).map_err(|_| unusable(&name, "its SKILL.md is not UTF-8 text"))
            }
            Err(error) => Err(error),
        };
        let mut files = Vec::new();
        self.list(skills, place, "", &mut files);
        Some(SkillCandidate { path: format!("{}/{name}", skills.path), name, owner: skills.owner, text, files })
    }

    /// Lists the other files of a skill. A directory that can't be listed is skipped: it can't be used either.
    fn list(&self, skills: &SkillDirectory, place: &WorkspacePath, within: &str, files: &mut Vec<String>) {
        for entry in skills.files.entries(place).unwrap_or_default() {
            let path = if within.is_empty() { entry.name } else { format!("{within}/{}", entry.name) };
            match entry.kind {
                _ if files.len() == MAX_FILES || self.hides(skills, &entry.place) => {}
                EntryKind::Directory if path.split('/').count() < 4 => self.list(skills, &entry.place, &path, files),
                EntryKind::File if path != "SKILL.md" => files.push(path),
                _ => {}
            }
        }
    }

    fn hides(&self, skills: &SkillDirectory, place: &WorkspacePath) -> bool {
        skills.applies_hidden_paths && self.hidden_paths.hides(Access::Read, place)
    }
}

/// The set of tools, with words that say how long it applies and where it doesn't.
fn ceiling(limit: &SkillLimit) -> Ceiling {
    let end = limit.until.map_or_else(String::new, |until| {
        format!(
            ", which limits this session until {} (`--session NAME` begins another)",
            until.strftime("%Y-%m-%d %H:%M UTC")
        )
    });
    Ceiling { source: format!("skill {}{end}", limit.skill), tools: limit.tools.clone() }
}

fn unusable(name: &str, why: &str) -> ToolError {
    ToolError::new(ErrorCode::IoError, format!("The skill `{name}` can't be used: {why}."))
}
