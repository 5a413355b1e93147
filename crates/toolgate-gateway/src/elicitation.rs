//! What a server asks the person in the middle of a call. The person sees which server asks; what looks like a secret isn't asked
//! for, and no address is ever opened here.

use serde_json::{Map, Value, json};
use toolgate_contract::{Choice, Person, Question, QuestionOutcome};

use crate::foreign_text::cleaned;

/// Fields of one form.
const MOST_FIELDS: usize = 16;

/// Choices of one field.
const MOST_CHOICES: usize = 20;

/// The choice that leaves a field out.
const LEAVE_OUT: &str = "(leave out)";

/// Words in the name of a field that ask for a secret.
const SECRET_WORDS: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "credential", "pin"];

/// Asks the person, and gives the result that the server gets: accepted with the answers, declined or cancelled.
pub(crate) async fn answer(server: &str, params: &Value, person: &dyn Person) -> Value {
    let asked = match params.get("mode").and_then(Value::as_str) {
        Some("url") => ask_to_open(server, params, person).await,
        _ => ask_form(server, params, person).await,
    };
    match asked {
        Ok(content) => json!({ "action": "accept", "content": content }),
        Err(NotAnswered::Declined) => json!({ "action": "decline" }),
        Err(NotAnswered::Cancelled) => json!({ "action": "cancel" }),
    }
}

/// Why a server gets no answer.
enum NotAnswered {
    /// The person, or a rule of ours, said no.
    Declined,
    /// Nobody answered.
    Cancelled,
}

/// Asks for the fields of a form, one by one.
async fn ask_form(server: &str, params: &Value, person: &dyn Person) -> Result<Value, NotAnswered> {
    let message = cleaned(params["message"].as_str().unwrap_or_default());
    let schema = &params["requestedSchema"];
    let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required =
        |name: &String| schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    // A form that can do without what looks like a secret is asked for the rest.
    let (secret, fields): (Map<String, Value>, Map<String, Value>) =
        fields.into_iter().partition(|(name, field)| asks_for_secret(name, field));
    let needs_secret = secret.keys().any(required) || (fields.is_empty() && !secret.is_empty());
    if fields.len() > MOST_FIELDS || names_secret(&message) || needs_secret {
        return Err(NotAnswered::Declined);
    }
    let mut content = Map::new();
    if fields.is_empty() {
        let agree = ["Yes", "No"].map(choice).to_vec();
        let question = Question { question: from_server(server, &message), choices: agree, free_text: false };
        return match ask(person, &question).await?.as_str() {
            "Yes" => Ok(Value::Object(content)),
            _ => Err(NotAnswered::Declined),
        };
    }
    for (name, field) in &fields {
        let title = cleaned(field.get("title").and_then(Value::as_str).unwrap_or(name));
        let about = field.get("description").and_then(Value::as_str).map(|text| format!(" ({})", cleaned(text)));
        let several = if is_list(field) { " Several are named with commas between them." } else { "" };
        let words = from_server(server, &format!("{message}\n{title}{}{several}", about.unwrap_or_default()));
        let mut choices = choices_of(field);
        let free_text = choices.is_empty() || is_list(field);
        choices.extend((!required(name)).then(|| choice(LEAVE_OUT)));
        let given = ask(person, &Question { question: words, choices, free_text }).await?;
        if given != LEAVE_OUT {
            content.insert(name.clone(), typed(field, &given).ok_or(NotAnswered::Declined)?);
        }
    }
    Ok(Value::Object(content))
}

/// Asks the person to open an address. It has to be one whose host can be read.
async fn ask_to_open(server: &str, params: &Value, person: &dyn Person) -> Result<Value, NotAnswered> {
    let address = params["url"].as_str().unwrap_or_default();
    let host = readable_host(address).ok_or(NotAnswered::Declined)?;
    let message = cleaned(params["message"].as_str().unwrap_or_default());
    let words = format!("{message}\nIt wants you to open a page of {host} yourself: {address}");
    let choices = ["I opened it", "No"].map(choice).to_vec();
    let question = Question { question: from_server(server, &words), choices, free_text: false };
    match ask(person, &question).await?.as_str() {
        "No" => Err(NotAnswered::Declined),
        _ => Ok(json!({})),
    }
}

/// The host of an address that a person can judge: https, plain ASCII, no user, no punycode.
fn readable_host(address: &str) -> Option<&str> {
    let rest = address.strip_prefix("https://").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_graphic()))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    (!host.is_empty() && host.bytes().all(is_plain) && !host.contains("xn--")).then_some(host)
}

async fn ask(person: &dyn Person, question: &Question) -> Result<String, NotAnswered> {
    match person.ask(question).await {
        Ok(QuestionOutcome::Answered(given)) => Ok(given.answer),
        Ok(QuestionOutcome::Dismissed { .. }) => Err(NotAnswered::Declined),
        Ok(QuestionOutcome::Nobody) | Err(_) => Err(NotAnswered::Cancelled),
    }
}

fn from_server(server: &str, words: &str) -> String {
    format!("The MCP server `{server}` asks: {words}")
}

fn choice(label: &str) -> Choice {
    Choice { label: label.to_owned(), description: None }
}

/// Whether a field takes several of its choices.
fn is_list(field: &Value) -> bool {
    field.get("type").and_then(Value::as_str) == Some("array")
}

/// The values that a field offers, each with its title where it has one.
fn choices_of(field: &Value) -> Vec<Choice> {
    if field.get("type").and_then(Value::as_str) == Some("boolean") {
        return ["true", "false"].map(choice).to_vec();
    }
    let of = if is_list(field) { &field["items"] } else { field };
    let list = |name: &str| of.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let titles = list("enumNames").iter().map(Some).chain(std::iter::repeat(None));
    let plain = list("enum").iter().zip(titles);
    let titled = list("oneOf").iter().chain(list("anyOf")).map(|one| (&one["const"], one.get("title")));
    let offered = plain.chain(titled).filter_map(|(value, title)| {
        let description = title.and_then(Value::as_str).map(cleaned);
        Some(Choice { label: cleaned(value.as_str()?), description })
    });
    offered.take(MOST_CHOICES).collect()
}

/// An answer as the type that the field wants.
fn typed(field: &Value, given: &str) -> Option<Value> {
    match field.get("type").and_then(Value::as_str) {
        Some("array") => several(field, given),
        Some("boolean") => given.parse::<bool>().ok().map(Value::from),
        Some("integer") => given.parse::<i64>().ok().map(Value::from),
        Some("number") => given.parse::<f64>().ok().map(Value::from),
        _ => Some(given.into()),
    }
}

/// The choices that an answer names; none if it names something else.
fn several(field: &Value, given: &str) -> Option<Value> {
    let offered: Vec<String> = choices_of(field).into_iter().map(|choice| choice.label).collect();
    // A choice may have a comma itself.
    let named: Vec<&str> = match offered.iter().any(|choice| choice == given) {
        true => vec![given],
        false => given.split(',').map(str::trim).filter(|name| !name.is_empty()).collect(),
    };
    named.iter().all(|name| offered.iter().any(|choice| choice == name)).then(|| json!(named))
}

/// Whether a field asks for something that a person must not give to a server's form.
fn asks_for_secret(name: &str, field: &Value) -> bool {
    let text = |name: &str| field.get(name).and_then(Value::as_str);
    let words = [Some(name), text("title"), text("description")];
    text("format") == Some("password") || words.into_iter().flatten().any(|words| names_secret(&cleaned(words)))
}

/// Whether a text, without what nobody sees, speaks of a secret.
fn names_secret(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    parts.any(|part| SECRET_WORDS.iter().any(|word| part == *word || (word.len() > 3 && part.contains(word))))
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use toolgate_contract::{BoxFuture, Message, QuestionAnswer, ToolError};

    use super::*;

    /// A person who gives these answers, and remembers what was asked.
    struct Scripted(Mutex<(Vec<&'static str>, Vec<String>)>);

    impl Person for Scripted {
        fn say(&self, _: &Message) -> bool {
            false
        }

        fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<QuestionOutcome, ToolError>> {
            let mut script = self.0.lock();
            script.1.push(question.question.clone());
            let answer = script.0.pop().and_then(|words| question.answer(words, "ada"));
            let answer = answer.unwrap_or(QuestionAnswer { answer: "none".into(), choice: None, by: "ada".into() });
            Box::pin(async { Ok(QuestionOutcome::Answered(answer)) })
        }

        fn sample<'a>(&'a self, _: &'a str, _: Value) -> BoxFuture<'a, Result<Option<Value>, ToolError>> {
            Box::pin(async { Ok(None) })
        }
    }

    fn asked(params: Value, answers: &[&'static str]) -> (Value, Vec<String>) {
        let person = Scripted(Mutex::new((answers.iter().rev().copied().collect(), Vec::new())));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = runtime.block_on(answer("trial", &params, &person));
        (answer, person.0.into_inner().1)
    }

    #[test]
    fn a_form_is_asked_field_by_field_and_answered_with_the_right_types() {
        let form = json!({ "message": "About\u{200b} you", "requestedSchema": { "type": "object", "required": ["name", "age"], "properties": {
            "name": { "type": "string" }, "age": { "type": "integer" },
            "colour": { "type": "string", "enum": ["red", "blue"] }, "news": { "type": "boolean" },
        } } });
        let (answer, questions) = asked(form, &["Ada", "36", "blue", LEAVE_OUT]);
        assert_eq!(answer, json!({ "action": "accept", "content": { "name": "Ada", "age": 36, "colour": "blue" } }));
        assert_eq!(questions[0], "The MCP server `trial` asks: About you\nname");
    }

    #[test]
    fn several_choices_titles_and_a_secret_that_can_be_left_out() {
        let fish = json!([{ "const": "f1", "title": "Tuna" }, { "const": "f2", "title": "Salmon" }]);
        let form = json!({ "message": "m", "requestedSchema": { "type": "object", "required": ["a"], "properties": {
            "a": { "type": "array", "items": { "type": "string", "enum": ["x", "y", "z"] } },
            "b": { "type": "array", "items": { "anyOf": fish } },
            "c": { "type": "integer", "description": "a number, but not your PIN" },
        } } });
        let (answer, questions) = asked(form.clone(), &["x, z", "f2"]);
        assert_eq!(answer, json!({ "action": "accept", "content": { "a": ["x", "z"], "b": ["f2"] } }));
        assert_eq!(questions.len(), 2, "what looks like a secret isn't asked for: {questions:?}");
        assert_eq!(asked(form, &["x, w"]).0, json!({ "action": "decline" }), "only what is offered");
        let pets = json!({ "type": "string", "enum": ["p1", "p2"], "enumNames": ["Cat", "Dog"] });
        let shown: Vec<String> = choices_of(&pets).into_iter().filter_map(|choice| choice.description).collect();
        assert_eq!(shown, ["Cat", "Dog"]);
    }

    #[test]
    fn secrets_and_addresses_that_mislead_are_declined_without_a_question() {
        let form = |name: &str, field: Value| {
            let mut properties = Map::new();
            properties.insert(name.to_owned(), field);
            json!({ "message": "m", "requestedSchema": { "type": "object", "properties": properties } })
        };
        let address = |url: &str| json!({ "mode": "url", "message": "open", "url": url });
        for params in [
            form("password", json!({ "type": "string" })),
            form("x", json!({ "type": "string", "title": "Your API token" })),
            form("x", json!({ "type": "string", "format": "password" })),
            form("pass\u{200b}word", json!({ "type": "string" })),
            form("x", json!({ "type": "string", "title": "Your pass\u{ad}word" })),
            json!({ "message": "Enter the password of your account.", "requestedSchema": {
                "type": "object", "properties": { "value": { "type": "string" } },
            } }),
            form("x", json!({ "type": "string", "description": "the PIN of your card" })),
            address("javascript:alert(1)"),
            address("http://example.com"),
            address("https://xn--pple-43d.com/login"),
            address("https://example.com@evil.example/"),
            address("https://exаmple.com/"),
        ] {
            let (answer, questions) = asked(params.clone(), &["x"]);
            assert_eq!((answer, questions.len()), (json!({ "action": "decline" }), 0), "{params}");
        }
        let spinning = form("spinning", json!({ "type": "string" }));
        assert_eq!(asked(spinning, &["fast"]).0["content"]["spinning"], "fast");
        let (answer, questions) = asked(address("https://example.com/consent?x=1"), &["I opened it"]);
        assert_eq!((answer["action"].as_str(), questions[0].contains("a page of example.com")), (Some("accept"), true));
    }
}
