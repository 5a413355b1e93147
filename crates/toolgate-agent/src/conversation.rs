//! The conversation that the model is shown, kept within its context window. When it is too long, the model summarizes
//! the oldest turns; where it can't, their results are replaced by a line that names the artifact with the full text.
//! Nothing is lost: the record has every message, and results stay readable as artifacts.

use serde_json::json;
use toolgate_contract::{Artifacts, MaskedPart, ToolError, counted};

use crate::model::ConversationEntry;
use crate::past_conversation::PastConversation;

/// Results of this many last turns stay as long as everything else makes room enough.
const PROTECTED_TURNS: usize = 2;
/// Shorter results aren't worth replacing.
const MIN_REPLACED_BYTES: usize = 400;
/// The part of the context that is freed once the conversation is too long, so that the beginning stays the same for a
/// while and a provider's cache remains valid.
const FREED_SHARE: f64 = 0.4;
/// The part of a conversation that is kept when the provider says that it is too long, whatever we counted.
const REFUSED_SHARE: f64 = 0.8;

/// A conversation, and how much of it fits into the model's context window.
#[derive(Debug)]
pub(crate) struct Conversation {
    entries: Vec<ConversationEntry>,
    /// Total bytes of all entries.
    bytes: usize,
    /// The size of the context window, in tokens.
    context_tokens: u64,
    /// Tokens used by everything else: the instructions and the tools.
    fixed: u64,
    /// Tokens per byte, as last counted by the provider.
    rate: f64,
    /// Whether the model accepts images.
    shows_images: bool,
    /// How many answers the model gave, those in a summary included.
    answers: u64,
}

/// What the model is asked for when the conversation is too long.
pub(crate) const SUMMARIZE: &str = "\
The conversation is getting too long. Write a summary that will replace everything above, for yourself: you will go on \
with the work from it, and see nothing else of what is above. Say, in this order: what the person asked for, word for \
word where it matters; what was decided and why; what was done, with every path that was changed; what was found out, \
with the facts that are still needed; what failed; what is left to do. Don't call a tool.";

/// The longest text of a result that is shown for a summary, in bytes.
const SUMMARIZED_RESULT_BYTES: usize = 4_000;
/// How many results of the summarized turns are named as artifacts.
const NAMED_RESULTS: usize = 40;

/// What was replaced.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Masked {
    pub(crate) parts: Vec<MaskedPart>,
}

impl Masked {
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

impl Conversation {
    pub(crate) fn new(context_tokens: u64, fixed_bytes: usize) -> Self {
        let rate = 0.25;
        let fixed = (fixed_bytes as f64 * rate) as u64;
        Self { entries: Vec::new(), bytes: 0, context_tokens, fixed, rate, shows_images: true, answers: 0 }
    }

    /// Continues an earlier conversation.
    pub(crate) fn restore(&mut self, past: PastConversation) {
        self.bytes = past.entries.iter().map(ConversationEntry::bytes).sum();
        (self.entries, self.answers) = (past.entries, past.answers);
    }

    /// Updates the rate by the token count of the last request.
    pub(crate) fn counted(&mut self, shown_bytes: usize, tokens: u64) {
        if tokens > 0 && shown_bytes > 2_000 {
            self.rate = (tokens as f64 / shown_bytes as f64).clamp(0.1, 1.0);
        }
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, mut entry: ConversationEntry) {
        if !self.shows_images {
            remove_images(&mut entry);
        }
        self.answers += u64::from(matches!(entry, ConversationEntry::Answered(_)));
        self.bytes += entry.bytes();
        self.entries.push(entry);
    }

    /// How many answers the model gave so far.
    pub(crate) fn answers(&self) -> u64 {
        self.answers
    }

    /// All entries.
    pub(crate) fn entries(&self) -> &[ConversationEntry] {
        &self.entries
    }

    /// All entries, to go on with later.
    pub(crate) fn into_entries(self) -> Vec<ConversationEntry> {
        self.entries
    }

    /// Total bytes of the conversation.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Replaces images by a note from now on. False when there were none.
    pub(crate) fn stop_showing_images(&mut self) -> bool {
        self.shows_images = false;
        let left_out = self.entries.iter_mut().map(remove_images).fold(false, |any, this| any | this);
        self.bytes = self.entries.iter().map(ConversationEntry::bytes).sum();
        left_out
    }

    fn tokens(&self) -> u64 {
        self.fixed + (self.bytes as f64 * self.rate) as u64
    }

    /// Whether it exceeds the context window.
    pub(crate) fn is_too_long(&self) -> bool {
        self.tokens() > self.context_tokens
    }

    /// Replaces old results, oldest first, until enough is free; if that isn't enough, also the arguments of old calls, and
    /// then the results of the last turns: the model can read those in parts.
    pub(crate) fn make_room(&mut self, artifacts: &dyn Artifacts) -> Result<Masked, ToolError> {
        let mut masked = Masked::default();
        if !self.is_too_long() {
            return Ok(masked);
        }
        let target = (self.context_tokens as f64 * (1.0 - FREED_SHARE)) as u64;
        let mut results = self.results();
        let recent = results.split_off(results.len().saturating_sub(PROTECTED_TURNS));
        let calls = 0..results.last().copied().unwrap_or_default();
        for index in results.into_iter().chain(calls) {
            if self.tokens() <= target {
                break;
            }
            masked.parts.extend(self.mask_entry(index, artifacts)?);
        }
        for index in recent {
            if !self.is_too_long() {
                break;
            }
            masked.parts.extend(self.mask_entry(index, artifacts)?);
        }
        Ok(masked)
    }

    /// Replaces everything in an entry that can be.
    fn mask_entry(&mut self, index: usize, artifacts: &dyn Artifacts) -> Result<Vec<MaskedPart>, ToolError> {
        let entry = &mut self.entries[index];
        let before = entry.bytes();
        let parts = parts_to_mask(entry, index, artifacts)?;
        parts.iter().for_each(|part| mask(entry, part));
        self.bytes = self.bytes - before + entry.bytes();
        Ok(parts)
    }

    /// Lowers the size of the context window after the provider refused the conversation as too long.
    pub(crate) fn was_refused_as_too_long(&mut self) {
        let kept = (self.bytes as f64 * self.rate * REFUSED_SHARE) as u64;
        self.context_tokens = self.context_tokens.min(self.fixed + kept);
    }

    /// How many of the oldest entries a summary would replace; none if that is too little to be worth it.
    pub(crate) fn summarizable(&self) -> Option<usize> {
        let turns =
            self.entries.iter().enumerate().filter(|(_, entry)| matches!(entry, ConversationEntry::Answered(_)));
        let first_protected = turns.map(|(index, _)| index).rev().nth(PROTECTED_TURNS - 1)?;
        let bytes: usize = self.entries[..first_protected].iter().map(ConversationEntry::bytes).sum();
        (bytes >= self.bytes / 3).then_some(first_protected)
    }

    /// The oldest entries as they are shown to the model for a summary: long results are shortened, so that they fit.
    pub(crate) fn to_summarize(&self, entries: usize) -> Vec<ConversationEntry> {
        let mut oldest = self.entries[..entries].to_vec();
        for entry in &mut oldest {
            let ConversationEntry::Observed(observations) = entry else { continue };
            for observation in observations {
                observation.images.clear();
                if observation.text.len() > SUMMARIZED_RESULT_BYTES {
                    observation.text.truncate(observation.text.floor_char_boundary(SUMMARIZED_RESULT_BYTES));
                    observation.text.push_str("\n[the rest is left out]");
                }
            }
        }
        oldest.push(ConversationEntry::Told(SUMMARIZE.into()));
        oldest
    }

    /// The text that stands in place of the oldest entries: the model's summary, and where their results are.
    pub(crate) fn summary_text(
        &self,
        entries: usize,
        summary: &str,
        artifacts: &dyn Artifacts,
    ) -> Result<String, ToolError> {
        let mut stored = Vec::new();
        for (index, entry) in self.entries[..entries].iter().enumerate() {
            let ConversationEntry::Observed(observations) = entry else { continue };
            let parts = parts_to_mask(entry, index, artifacts)?;
            for (item, observation) in observations.iter().enumerate() {
                let new = parts.iter().find(|part| part.item == item).and_then(|part| part.artifact.as_ref());
                stored.extend(new.or(observation.artifact.as_ref()).map(|id| format!("- {}: {id}", observation.name)));
            }
        }
        let named = &stored[stored.len().saturating_sub(NAMED_RESULTS)..];
        let mut text = format!("[Summary of the conversation so far, which was too long to keep:]\n\n{summary}");
        if !named.is_empty() {
            text.push_str("\n\n[Results of calls until then, readable with artifact {\"id\":\"…\"}:]\n");
            text.push_str(&named.join("\n"));
        }
        Ok(text)
    }

    /// Replaces the oldest entries.
    pub(crate) fn replace_oldest(&mut self, entries: usize, text: String) {
        self.entries.splice(..entries, [ConversationEntry::Told(text)]);
        self.bytes = self.entries.iter().map(ConversationEntry::bytes).sum();
    }

    /// The positions of results.
    fn results(&self) -> Vec<usize> {
        let all = self.entries.iter().enumerate();
        all.filter(|(_, entry)| matches!(entry, ConversationEntry::Observed(_))).map(|(index, _)| index).collect()
    }
}

/// Replaces each image by a note. False when there was none.
fn remove_images(entry: &mut ConversationEntry) -> bool {
    let ConversationEntry::Observed(observations) = entry else { return false };
    let mut any = false;
    for observation in observations.iter_mut().filter(|observation| !observation.images.is_empty()) {
        observation.images.clear();
        observation.text.push_str("\n[This model can't be shown images.]");
        any = true;
    }
    any
}

/// What can be removed from an entry, after its text was stored.
fn parts_to_mask(
    entry: &ConversationEntry,
    index: usize,
    artifacts: &dyn Artifacts,
) -> Result<Vec<MaskedPart>, ToolError> {
    let mut parts = Vec::new();
    let mut store = |item: usize, text: &str, mime: &str| -> Result<(), ToolError> {
        if text.len() >= MIN_REPLACED_BYTES {
            let artifact = Some(artifacts.store(text.as_bytes(), mime)?.id);
            parts.push(MaskedPart { entry: index, item, artifact, bytes: text.len() as u64 });
        }
        Ok(())
    };
    match entry {
        ConversationEntry::Told(_) => {}
        ConversationEntry::Answered(answer) => {
            for (item, call) in answer.calls.iter().enumerate() {
                // The arguments of a call can contain an entire file.
                store(item, &call.arguments_or_empty().to_string(), "application/json")?;
            }
        }
        ConversationEntry::Observed(observations) => {
            for (item, observation) in observations.iter().enumerate().filter(|(_, seen)| seen.artifact.is_none()) {
                store(item, &observation.text, "text/plain; charset=utf-8")?;
            }
            let images = observations.iter().enumerate().filter(|(_, seen)| !seen.images.is_empty());
            parts.extend(images.map(|(item, seen)| {
                let bytes = seen.images.iter().map(|image| image.data.len() as u64).sum();
                MaskedPart { entry: index, item, artifact: None, bytes }
            }));
        }
    }
    Ok(parts)
}

/// Removes one part from its entry; a line in its place says where it is now.
pub(crate) fn mask(entry: &mut ConversationEntry, part: &MaskedPart) {
    match (entry, &part.artifact) {
        (ConversationEntry::Observed(observations), artifact) => {
            let Some(observation) = observations.get_mut(part.item) else { return };
            match artifact {
                Some(id) => {
                    observation.text = format!(
                        "[This result of `{}` was removed to save context: {}. Read it again with artifact \
                         {{\"id\":\"{id}\"}}.]",
                        observation.name,
                        counted(part.bytes, "byte")
                    );
                    observation.artifact = Some(id.clone());
                }
                None => {
                    observation.images.clear();
                    let note = "\n[The image was removed to save context. Call the tool again to see it.]";
                    observation.text.push_str(note);
                }
            }
        }
        (ConversationEntry::Answered(answer), Some(id)) => {
            if let Some(call) = answer.calls.get_mut(part.item) {
                call.args =
                    Ok(json!({ "taken_out": format!("{}, now in artifact {id}", counted(part.bytes, "byte")) }));
            }
            // The provider's own form still contains them.
            answer.raw.clear();
        }
        (ConversationEntry::Answered(_) | ConversationEntry::Told(_), _) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use toolgate_contract::{ArtifactDraft, ArtifactRef};
    use toolgate_dialects::ToolCallKind;

    use super::*;
    use crate::model::{InlineImage, Observation};

    /// Short texts and images are replaced without being stored.
    struct NothingToKeep;

    impl Artifacts for NothingToKeep {
        fn open(&self, _id: &str) -> Result<(ArtifactRef, File), ToolError> {
            unreachable!("nothing is read back")
        }
        fn store(&self, _bytes: &[u8], _mime: &str) -> Result<ArtifactRef, ToolError> {
            unreachable!("nothing is kept")
        }
        fn begin(&self, _mime: &str) -> Result<Box<dyn ArtifactDraft>, ToolError> {
            unreachable!("nothing is kept")
        }
    }

    /// How many images each entry has left, once room is made in a context of this many tokens: six have one each.
    fn images_left(context_tokens: u64) -> (Vec<usize>, bool) {
        let mut conversation = Conversation::new(context_tokens, 0);
        for turn in 0..6 {
            let image = InlineImage { mime: "image/png".into(), data: "x".repeat(100_000) };
            conversation.push(ConversationEntry::Observed(vec![Observation {
                id: turn.to_string(),
                shape: ToolCallKind::Function,
                name: "image".into(),
                text: "width: 1".into(),
                ok: true,
                artifact: None,
                images: vec![image],
            }]));
        }
        assert!(conversation.is_too_long());
        let masked = conversation.make_room(&NothingToKeep).unwrap();
        let left = conversation.entries().iter().map(|entry| match entry {
            ConversationEntry::Observed(seen) => seen[0].images.len(),
            _ => 0,
        });
        let left: Vec<usize> = left.collect();
        assert_eq!(masked.bytes(), 100_000 * (6 - left.iter().sum::<usize>() as u64));
        (left, conversation.is_too_long())
    }

    #[test]
    fn old_images_make_room_and_the_last_ones_stay() {
        assert_eq!(images_left(7_000), (vec![0, 0, 0, 0, 1, 1], false));
    }

    #[test]
    fn the_last_ones_make_room_where_the_old_ones_are_not_enough() {
        assert_eq!(images_left(2_000), (vec![0, 0, 0, 0, 0, 1], false));
        assert_eq!(images_left(1_000), (vec![0, 0, 0, 0, 0, 0], false));
        assert_eq!(images_left(10), (vec![0, 0, 0, 0, 0, 0], true), "what remains doesn't fit");
    }
}
