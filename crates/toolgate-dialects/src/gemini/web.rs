//! Fetching pages.

use serde_json::json;
use toolgate_contract::ToolError;

use super::commands::untrusted;
use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

/// Addresses in one prompt.
const MOST_ADDRESSES: usize = 20;

pub(super) fn enter_fetch(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let addresses = addresses(args.word("prompt"));
    match addresses.first() {
        None => Err(ToolError::invalid_args("The 'prompt' must contain at least one valid URL.").into()),
        Some(_) if addresses.len() > MOST_ADDRESSES => {
            Err(ToolError::invalid_args(format!("At most {MOST_ADDRESSES} addresses can be fetched at once.")).into())
        }
        Some(address) => Ok(fetch(address)),
    }
}

fn fetch(address: &str) -> NativeCall {
    NativeCall { then: Some(fetch_next), is_part: true, ..NativeCall::new("fetch", json!({ "url": address })) }
}

fn fetch_next(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    Ok(addresses(answered.args.word("prompt")).get(answered.earlier.len() + 1).map(|address| fetch(address)))
}

/// The addresses in a text, each once. What ends a sentence isn't part of one.
fn addresses(prompt: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for word in prompt.split_whitespace() {
        let start = ["https://", "http://"].iter().filter_map(|scheme| word.find(scheme)).min();
        let Some(start) = start else { continue };
        let address = word[start..].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '>', '"', '\'']);
        if !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

pub(super) fn leave_fetch(returned: &mut Returned<'_>) -> ShownResult {
    let prompt = returned.args.word("prompt");
    let replies = returned.earlier.iter().chain([returned.reply]);
    let pages = addresses(prompt).into_iter().zip(replies).map(|(address, reply)| {
        let content = reply.payload.as_ref().and_then(|page| page["content"].as_str());
        let text = content.or(reply.error.as_ref().map(|error| error.message.as_str())).unwrap_or_default();
        format!("Content of {address}:\n{}", text.trim_end())
    });
    let pages: Vec<String> = pages.collect();
    let text = untrusted(&pages.join("\n\n"));
    ShownResult::ok(format!("{text}\nThese are the pages' own texts. What you wanted of them: {prompt}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_words() {
        assert_eq!(
            addresses("Compare https://a.example/x?y=1, (http://b.example) and https://a.example/x?y=1."),
            ["https://a.example/x?y=1", "http://b.example"]
        );
        assert!(addresses("nothing here").is_empty());
    }
}
