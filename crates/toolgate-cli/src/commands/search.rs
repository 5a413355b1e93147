//! `toolgate search`: ranks places of the workspace for a question.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use toolgate_contract::counted;

use super::Invocation;
use super::call::{CallArgs, PerformedCall};
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, paint, plain};

/// Find the places in the workspace that fit a question best.
///
/// Functions, types and sections of documents, ranked by their words, names and paths. Each begins with `path:line`, which
/// most terminals open. Files that git ignores, hidden ones and those that policy hides aren't searched. The first search in a
/// workspace indexes it; later ones index only what has changed.
///
/// Examples:
///   toolgate search "where are retries decided"
///   toolgate search parse_header --lang rust
///   toolgate search "session cookie" --kind tests --limit 5
///   toolgate search 读取配置 --path src --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SearchArgs {
    /// The question: words, identifiers or a sentence.
    #[arg(required = true)]
    query: Vec<String>,
    /// Search only this directory or file; can be given several times.
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Search only files that match this glob; a leading `!` excludes. Can be given several times.
    #[arg(long, value_name = "GLOB")]
    glob: Vec<String>,
    /// Search only this language, such as rust or py.
    #[arg(long)]
    lang: Option<String>,
    /// Search only this kind of file.
    #[arg(long, value_enum, default_value_t)]
    kind: SearchedKind,
    /// The most places to show.
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
}

/// Which files to search.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum SearchedKind {
    #[default]
    Any,
    Code,
    Docs,
    Tests,
}

impl SearchArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let mut args = Map::new();
        args.insert("query".into(), json!(self.query.join(" ")));
        args.insert("limit".into(), json!(self.limit));
        let kind = self.kind.to_possible_value().map(|kind| kind.get_name().to_owned());
        args.insert("kind".into(), json!(kind));
        if !self.paths.is_empty() {
            args.insert("paths".into(), json!(self.paths));
        }
        if !self.glob.is_empty() {
            args.insert("glob".into(), json!(self.glob));
        }
        if let Some(lang) = self.lang {
            args.insert("lang".into(), json!(lang));
        }
        let performed =
            CallArgs::approved("search", Value::Object(args).to_string()).perform(invocation, Vec::new())?;
        match (performed.reply.ok && !invocation.json, performed.reply.payload.as_ref()) {
            (true, Some(payload)) => print(payload, &beginning(invocation)),
            _ => performed.print(invocation)?,
        }
        Ok(Exit::of_reply(&performed.reply))
    }
}

/// What paths begin with so that a terminal opens them from here: nothing in the workspace's directory, else that directory.
fn beginning(invocation: &Invocation) -> PathBuf {
    let directory = &invocation.location.directory;
    let is_here = std::env::current_dir().is_ok_and(|here| here == *directory);
    if is_here { PathBuf::new() } else { directory.clone() }
}

/// Prints what a search found, for people.
fn print(payload: &Value, beginning: &Path) {
    let text = |value: &Value, name: &str| plain(value[name].as_str().unwrap_or_default());
    for (number, place) in payload["results"].as_array().into_iter().flatten().enumerate() {
        if number > 0 {
            outln!();
        }
        let path = plain(&beginning.join(place["path"].as_str().unwrap_or_default()).to_string_lossy());
        let symbol = text(place, "symbol");
        let symbol = if symbol.is_empty() { String::new() } else { format!("  {symbol}") };
        outln!("{}{symbol}", paint(BOLD, format!("{path}:{}", place["lines"][0])));
        outln!("  {}", paint(DIM, text(place, "why")));
        let first = place["snippet_line"].as_u64().unwrap_or(1);
        for (line, content) in place["snippet"].as_str().unwrap_or_default().lines().enumerate() {
            outln!("  {} {}", paint(DIM, format!("{:>5}", first + line as u64)), plain(content));
        }
        for also in place["also"].as_array().into_iter().flatten() {
            let also = format!("also {path}:{}  {}", also["lines"][0], text(also, "symbol"));
            outln!("  {}", paint(DIM, also.trim_end()));
        }
    }
    for name in ["fallback", "note"] {
        if let Some(note) = payload[name].as_str() {
            errln!("{}", plain(note));
        }
    }
    let (files, indexed) = (payload["coverage"]["files"].as_u64(), payload["coverage"]["indexed"].as_u64());
    if let (Some(files), Some(indexed)) = (files, indexed)
        && indexed < files
    {
        errln!("{} of {} indexed.", indexed, counted(files, "file"));
    }
}

/// How much of the workspace a search's reply covers: the files, and those that the index has.
pub(super) fn coverage(performed: &PerformedCall) -> Option<(u64, u64)> {
    let coverage = &performed.reply.payload.as_ref()?["coverage"];
    Some((coverage["files"].as_u64()?, coverage["indexed"].as_u64()?))
}
