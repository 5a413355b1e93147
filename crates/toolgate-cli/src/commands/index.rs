//! `toolgate index`: shows, rebuilds and removes the search index of a workspace.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_contract::counted;
use toolgate_search::{IndexStatus, WorkspaceIndex};

use super::Invocation;
use super::caches::in_words;
use super::call::CallArgs;
use super::search::coverage;
use crate::exit::Exit;
use crate::output::{errln, outln};

/// Show, rebuild or remove the index that `search` uses.
///
/// The index is in the workspace's state directory. It holds numbers and paths, no text, and is brought up to date by every
/// search, so none of this is ever necessary.
///
/// Examples:
///   toolgate index status
///   toolgate index rebuild
///   toolgate index drop
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct IndexArgs {
    #[command(subcommand)]
    verb: IndexVerb,
}

#[derive(Debug, Subcommand)]
enum IndexVerb {
    /// Show how much is indexed.
    Status,
    /// Remove the index, and index everything again.
    Rebuild,
    /// Remove the index; the next search makes a new one.
    Drop,
}

impl IndexArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let index = invocation.location.search_index(&invocation.location.load()?.settings)?;
        match self.verb {
            IndexVerb::Status => status(&index, invocation.json),
            IndexVerb::Rebuild => rebuild(&index, invocation),
            IndexVerb::Drop => {
                let bytes = remove(&index)?;
                match invocation.json {
                    true => outln!("{}", json!({ "removed_bytes": bytes })),
                    false => outln!("Removed {}.", in_words(bytes)),
                }
                Ok(Exit::Ok)
            }
        }
    }
}

fn status(index: &WorkspaceIndex, as_json: bool) -> Result<Exit> {
    let status = index.status()?;
    if as_json {
        let status = status.map(|IndexStatus { files, chunks, bytes, has_vectors, is_damaged }| {
            json!({ "files": files, "chunks": chunks, "bytes": bytes, "vectors": has_vectors, "damaged": is_damaged })
        });
        outln!("{}", json!(status));
        return Ok(Exit::Ok);
    }
    outln!("{}", in_a_sentence(status.as_ref()));
    Ok(Exit::Ok)
}

/// The state of an index, for people.
pub(super) fn in_a_sentence(status: Option<&IndexStatus>) -> String {
    match status {
        None => "not stored, since there is no signing key".into(),
        Some(status) if status.is_damaged => "a part is damaged; the next search indexes it again".into(),
        Some(status) if status.files == 0 => "empty; the first search fills it".into(),
        Some(IndexStatus { files, chunks, bytes, has_vectors, .. }) => {
            let vectors = if *has_vectors { ", with vectors" } else { "" };
            format!("{} in {}, {}{vectors}", counted(*chunks, "place"), counted(*files, "file"), in_words(*bytes))
        }
    }
}

fn remove(index: &WorkspaceIndex) -> Result<u64> {
    match index.clear()? {
        Some(bytes) => Ok(bytes),
        None => bail!("Another program changes the index right now. Try again when its search has ended."),
    }
}

/// Indexes everything through the gate, as any search does; one search after another, since each has limited time.
fn rebuild(index: &WorkspaceIndex, invocation: &Invocation) -> Result<Exit> {
    remove(index)?;
    let mut before = None;
    loop {
        let args = json!({ "query": "index", "limit": 1 }).to_string();
        let performed = CallArgs::approved("search", args).perform(invocation, Vec::new())?;
        let Some((files, indexed)) = coverage(&performed) else {
            performed.print(invocation)?;
            return Ok(Exit::of_reply(&performed.reply));
        };
        if indexed >= files || before == Some(indexed) {
            if indexed < files {
                errln!("{} of {} indexed: the index is as large as `search.max_bytes` lets it be.", indexed, files);
            }
            return status(index, invocation.json);
        }
        before = Some(indexed);
    }
}
