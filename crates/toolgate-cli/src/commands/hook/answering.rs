//! One event: read, judged by the helper or in this process, and answered. Everything that goes wrong is a denial.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use toolgate_contract::counted;
use toolgate_dialects::strict_json;
use toolgate_hooks::{ClientCall, ClientEvent, EventMoment, HookAnswer, HookClient, HookOutput, HookedWorkspace};

use super::HookRequest;
use crate::exit::Exit;

/// How long a decision may take. Clients let a call run whose hook takes longer than their own limit, which is twice this or more.
const DEADLINE: Duration = Duration::from_secs(15);

/// Answers the event on standard input, as it is judged.
pub(super) fn answer(
    client: &'static HookClient,
    name: Option<&str>,
    judge: impl FnOnce(HookRequest) -> Result<HookOutput>,
) -> Exit {
    let is_answered = Arc::new(AtomicBool::new(false));
    watch(client, Arc::clone(&is_answered));
    let judged = catch_unwind(AssertUnwindSafe(|| judge(read_request(client, name)?)));
    let output = match judged {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => denial(client, &format!("{error:#}")),
        Err(_) => denial(client, "the hook failed inside"),
    };
    print(&output, &is_answered)
}

/// Denies when the time is up.
fn watch(client: &'static HookClient, is_answered: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        std::thread::sleep(DEADLINE);
        let output = denial(client, &format!("no decision was made within {}", counted(DEADLINE.as_secs(), "second")));
        if let Exit::Code(code) = print(&output, &is_answered) {
            std::process::exit(code.into());
        }
    });
}

/// Prints the answer, unless there was one.
fn print(output: &HookOutput, is_answered: &AtomicBool) -> Exit {
    if is_answered.swap(true, Ordering::SeqCst) {
        // The other thread is about to end the program.
        std::thread::sleep(Duration::from_secs(1));
        return Exit::Code(2);
    }
    let written = std::io::stdout().write_all(output.stdout.as_bytes()).and_then(|()| std::io::stdout().flush());
    let _ = std::io::stderr().write_all(output.stderr.as_bytes());
    // A decision that nobody could read is none.
    Exit::Code(if written.is_ok() { output.code } else { 2 })
}

/// A denial in the client's form, whatever the event was.
fn denial(client: &HookClient, why: &str) -> HookOutput {
    let reason = format!("Toolgate can't judge this call, so it is denied: {why}. `toolgate doctor` may say more.");
    let call = ClientCall { id: None, tool: String::new(), input: Value::Null, can_ask: false };
    let event = ClientEvent { session: String::new(), directory: None, moment: EventMoment::Before(call) };
    (client.write)(&event, &HookAnswer::Deny { reason })
}

fn read_request(client: &HookClient, name: Option<&str>) -> Result<HookRequest> {
    let mut event = Vec::new();
    std::io::stdin().read_to_end(&mut event).context("the event can't be read")?;
    Ok(HookRequest { client: client.name.to_owned(), name: name.map(str::to_owned), event })
}

/// Answers a request, in whichever process judges.
pub(super) async fn answer_request(
    hooked: &HookedWorkspace,
    client: &'static HookClient,
    request: &HookRequest,
) -> Result<HookOutput> {
    let mut value = strict_json::parse(&request.event).map_err(|error| anyhow!("the event is no JSON: {error}"))?;
    if let (Some(name), Some(fields)) = (&request.name, value.as_object_mut()) {
        fields.insert("hook_event_name".into(), json!(name));
    }
    let event = (client.read)(&value).map_err(|error| anyhow!("{error}"))?;
    match hooked.answer(client, &event).await {
        Ok(answer) => Ok((client.write)(&event, &answer)),
        Err(error) => match event.moment {
            EventMoment::Before(_) => {
                Ok((client.write)(&event, &HookAnswer::Deny { reason: format!("Toolgate: {error}") }))
            }
            // Nothing runs because of this event.
            _ => Ok((client.write)(&event, &HookAnswer::Noted)),
        },
    }
}
