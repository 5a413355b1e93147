//! `memory`: saves notes beyond this run. Notes belong to the workspace and have ids. Their number is limited, so that
//! they stay worth reading.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Access, Effect, ErrorCode, Hands, NoteKind, Permission, Risk, SideEffect, Spec, Tool, ToolError,
};

/// Maximum number of entries.
const MAX_ENTRIES: usize = 200;
/// Default number of entries in one reply.
const DEFAULT_LIMIT: usize = 20;

/// Saves notes beyond this run.
pub struct MemoryTool;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MemoryAction {
    /// Save something new: `content`, and a `title` if it helps.
    Create,
    /// Replace the entry `id`.
    Update,
    /// Delete entry `id`.
    Delete,
    /// Find entries that contain the words of `query`; without it, all.
    Search,
}

/// The action and its parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to do.
    action: MemoryAction,
    /// For `update` and `delete`.
    #[serde(default)]
    id: Option<String>,
    /// For `create` and `update`.
    #[serde(default)]
    #[schemars(length(max = 200))]
    title: Option<String>,
    /// For `create` and `update`.
    #[serde(default)]
    #[schemars(length(min = 1, max = 4000))]
    content: Option<String>,
    /// Words, for `search`.
    #[serde(default)]
    query: Option<String>,
    /// For `search`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

/// One saved note.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MemoryEntry {
    /// Its id.
    id: String,
    /// Its heading.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    title: Option<String>,
    /// Its content.
    content: String,
}

/// The resulting entries.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The entries created, changed, deleted or found; best matches first, then newest.
    memories: Vec<MemoryEntry>,
    /// Total number of entries.
    total: usize,
}

/// The saved entries, oldest first, and the number of the last id. No id is used twice.
#[derive(Debug, Default, Serialize, Deserialize)]
struct MemoryEntries {
    last: u64,
    entries: Vec<MemoryEntry>,
}

impl Tool for MemoryTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "memory",
        version: "1.0.0",
        description: "Remember facts about this workspace and the person's wishes beyond this run. Search before \
                      you create. Secrets are replaced.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[SideEffect::KeepsNotes],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        let access = if args.action == MemoryAction::Search { Access::Read } else { Access::Write };
        vec![Effect::Note { book: NoteKind::Memory, access }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        match args.action {
            MemoryAction::Search => Ok(hands.notes::<MemoryEntries>(NoteKind::Memory)?.search(&args)),
            MemoryAction::Create => {
                hands.rewrite(NoteKind::Memory, |entries: &mut MemoryEntries| entries.create(&args))
            }
            MemoryAction::Update => {
                hands.rewrite(NoteKind::Memory, |entries: &mut MemoryEntries| entries.update(&args))
            }
            MemoryAction::Delete => {
                hands.rewrite(NoteKind::Memory, |entries: &mut MemoryEntries| entries.delete(&args))
            }
        }
    }
}

impl MemoryEntries {
    fn create(&mut self, args: &Args) -> Result<Output, ToolError> {
        let content = given(args.content.as_ref(), "content", "create")?;
        if let Some(same) = self.entries.iter().find(|entry| entry.content == *content) {
            return Ok(Output { memories: vec![same.clone()], total: self.entries.len() });
        }
        if self.entries.len() >= MAX_ENTRIES {
            let message = format!("All {MAX_ENTRIES} entries are in use.");
            return Err(ToolError::new(ErrorCode::LimitReached, message)
                .with_hint("Search for entries that are out of date or say the same, and delete or update them."));
        }
        self.last += 1;
        let new = MemoryEntry { id: format!("mem_{}", self.last), title: args.title.clone(), content: content.clone() };
        self.entries.push(new.clone());
        Ok(Output { memories: vec![new], total: self.entries.len() })
    }

    fn update(&mut self, args: &Args) -> Result<Output, ToolError> {
        let content = given(args.content.as_ref(), "content", "update")?;
        let at = self.find(given(args.id.as_ref(), "id", "update")?)?;
        // The entry that was updated last moves to the end.
        let mut entry = self.entries.remove(at);
        entry.content.clone_from(content);
        entry.title = args.title.clone().or(entry.title);
        self.entries.push(entry.clone());
        Ok(Output { memories: vec![entry], total: self.entries.len() })
    }

    fn delete(&mut self, args: &Args) -> Result<Output, ToolError> {
        let at = self.find(given(args.id.as_ref(), "id", "delete")?)?;
        let gone = self.entries.remove(at);
        Ok(Output { memories: vec![gone], total: self.entries.len() })
    }

    /// Ranks entries by how many of the words they contain; entries with none are left out.
    fn search(self, args: &Args) -> Output {
        let words: Vec<String> = args.query.iter().flat_map(|query| query.split_whitespace()).map(lowered).collect();
        let rank = |entry: &MemoryEntry| {
            let text =
                lowered(&format!("{} {} {}", entry.id, entry.title.as_deref().unwrap_or_default(), entry.content));
            words.iter().filter(|word| text.contains(*word)).count()
        };
        let total = self.entries.len();
        let mut found: Vec<(usize, MemoryEntry)> =
            self.entries.into_iter().rev().map(|entry| (rank(&entry), entry)).collect();
        found.retain(|(rank, _)| *rank > 0 || words.is_empty());
        found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        found.truncate(args.limit.unwrap_or(DEFAULT_LIMIT));
        Output { memories: found.into_iter().map(|(_, entry)| entry).collect(), total }
    }

    fn find(&self, id: &str) -> Result<usize, ToolError> {
        self.entries.iter().position(|entry| entry.id == id).ok_or_else(|| {
            ToolError::new(ErrorCode::NotFound, format!("There is no memory `{id}`."))
                .with_hint("Use the action `search` to see the existing ids.")
        })
    }
}

fn lowered(text: &str) -> String {
    text.to_lowercase()
}

fn given<'a>(value: Option<&'a String>, field: &str, action: &str) -> Result<&'a String, ToolError> {
    value.ok_or_else(|| ToolError::invalid_args(format!("`{action}` needs `{field}`.")))
}
