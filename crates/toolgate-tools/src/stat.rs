//! `stat`: what the file system says about a path, and what kind of content a file has.

use std::io::Read;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Access, Effect, EntryKind, EntryStatus, Hands, Permission, Risk, Spec, Tool, ToolError, schemars, sha256,
};

use crate::support::media_type::media_type;
use crate::support::text_page::{PageRequest, PagedContent, find};

/// Larger files are neither hashed nor are their lines counted.
const MAX_EXAMINED_BYTES: u64 = 16 * 1024 * 1024;
/// First bytes of a file that show its format.
const HEAD: u64 = 512;

/// Shows what is known about a path.
pub struct StatTool;

/// The path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of a file or directory, relative to the workspace. A symbolic link isn't followed.
    path: String,
}

/// What is known about the path.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The path.
    path: String,
    /// Its kind.
    kind: EntryKind,
    /// Size in bytes.
    size: u64,
    /// Permission bits in octal, such as `644`.
    mode: String,
    /// Number of the user who owns it.
    user: u32,
    /// Number of the group that owns it.
    group: u32,
    /// Number of hard links.
    links: u64,
    /// When its content last changed.
    modified: String,
    /// When it was last read, as far as the file system keeps track.
    accessed: String,
    /// When its content, mode, owner or name last changed.
    changed: String,
    /// When it was made, where the file system knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Media type of a file, by its content and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    /// Lines of a text file of up to 16 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    /// Hash of a file of up to 16 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl Tool for StatTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "stat",
        version: "1.0.0",
        description: "Show facts about a file, directory or link: kind, size, mode, owner, times, link target; of a \
                      file also media type, number of lines and hash.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::Entry { path: args.path.clone(), access: Access::Read }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        hands.blocking(move |hands| stat(args.path, hands)).await
    }
}

fn stat(path: String, hands: &dyn Hands) -> Result<Output, ToolError> {
    let status = hands.status(&path)?.ok_or_else(|| ToolError::not_found(&path))?;
    let content = match status.kind {
        EntryKind::File => examine(&path, hands)?,
        _ => FileFacts::default(),
    };
    let EntryStatus { kind, size, mode, owner, links, modified, accessed, changed, created, target } = status;
    let FileFacts { mime, lines, sha256 } = content;
    Ok(Output {
        path,
        kind,
        size,
        mode: format!("{mode:03o}"),
        user: owner.user,
        group: owner.group,
        links,
        modified: modified.to_string(),
        accessed: accessed.to_string(),
        changed: changed.to_string(),
        created: created.map(|time| time.to_string()),
        target,
        mime,
        lines,
        sha256,
    })
}

/// What a file's content shows.
#[derive(Default)]
struct FileFacts {
    mime: Option<String>,
    lines: Option<u64>,
    sha256: Option<String>,
}

fn examine(path: &str, hands: &dyn Hands) -> Result<FileFacts, ToolError> {
    let unreadable = |error: &std::io::Error| match hands.is_cancelled() {
        true => ToolError::cancelled(),
        false => ToolError::io(&format!("`{path}` can't be read"), error),
    };
    let opened = hands.open(path)?;
    let nothing = PageRequest { offset: 1, lines: 0, bytes: 0 };
    let found =
        find(&opened.file, opened.size, &nothing, &|| hands.is_cancelled()).map_err(|error| unreadable(&error))?;
    match found {
        PagedContent::Text(text) => {
            Ok(FileFacts { mime: Some(media_type(path, None)), lines: text.total, sha256: text.sha256 })
        }
        PagedContent::Binary(_) => {
            let is_examined = opened.size <= MAX_EXAMINED_BYTES;
            let mut bytes = Vec::new();
            let most = if is_examined { MAX_EXAMINED_BYTES + 1 } else { HEAD };
            hands.open(path)?.file.take(most).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
            let mime = media_type(path, Some(&bytes));
            Ok(FileFacts { mime: Some(mime), lines: None, sha256: is_examined.then(|| sha256(&bytes)) })
        }
    }
}
