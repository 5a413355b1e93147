//! The limits that loaded skills put on a session, for the next program that goes on with it: one small signed JSON file in
//! the directory of the session, or of the run.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_contract::{Durability, ErrorCode, ToolError};

use crate::SigningKey;
use crate::directory::DirectoryHandle;
use crate::signed_file::SignedFile;

/// The tools that a loaded skill limits a session to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillLimit {
    /// The skill.
    pub skill: String,
    /// The tools that may be used.
    pub tools: Vec<String>,
    /// When the limit ends; none if it lasts as long as its run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<Timestamp>,
}

impl SkillLimit {
    /// Whether both limit to the same, whenever they end.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.skill, &self.tools) == (&other.skill, &other.tools)
    }
}

/// The stored limits of one session or run.
pub struct SkillLimits {
    directory: Arc<DirectoryHandle>,
    owner: String,
    key: Option<SigningKey>,
    durability: Durability,
}

impl SkillLimits {
    pub(crate) fn new(
        directory: Arc<DirectoryHandle>,
        owner: String,
        key: Option<SigningKey>,
        durability: Durability,
    ) -> Self {
        Self { directory, owner, key, durability }
    }

    /// The limits that apply now. A file that can't be trusted is an error: without it the session could do more than it may.
    pub fn read(&self, now: Timestamp) -> Result<Vec<SkillLimit>, ToolError> {
        live(self.file().read()?, now)
    }

    /// Adds a limit, or prolongs it.
    pub fn add(&self, limit: &SkillLimit, now: Timestamp) -> Result<(), ToolError> {
        self.file().rewrite(&mut |before| {
            let mut limits = live(before, now)?;
            limits.retain(|known| !known.is_same(limit));
            limits.push(limit.clone());
            Ok(json!(limits))
        })
    }

    fn file(&self) -> SignedFile<'_> {
        SignedFile {
            directory: &self.directory,
            name: "skills",
            owner: &self.owner,
            content: "loaded skills",
            key: self.key.as_ref(),
            durability: self.durability,
        }
    }
}

fn live(stored: Option<Value>, now: Timestamp) -> Result<Vec<SkillLimit>, ToolError> {
    let Some(stored) = stored else { return Ok(Vec::new()) };
    let mut limits: Vec<SkillLimit> = serde_json::from_value(stored).map_err(|fault| {
        ToolError::new(ErrorCode::IoError, format!("The stored file of loaded skills can't be read: {fault}."))
    })?;
    limits.retain(|limit| limit.until.is_none_or(|until| until > now));
    Ok(limits)
}
