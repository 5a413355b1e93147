//! Checks that the programs which tools and skills say they require are there, where commands look for them: inside of the
//! sandbox.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use toolgate_contract::{LaunchSpec, counted};
use toolgate_sandbox::process::{Profile, Sandbox, SandboxOptions};
use toolgate_tools::skill_commands;

use super::{DoctorCheck, broken, held, partly};
use crate::commands::{Invocation, block_on};
use crate::workspace::open_workspace;

const NAME: &str = "required commands";

/// Prints those of its arguments that aren't commands.
const SCRIPT: &str = r#"for name; do command -v -- "$name" >/dev/null || printf '%s\n' "$name"; done"#;

/// The required programs, each with whom it is required by.
type Required = BTreeMap<String, Vec<String>>;

/// Looks for every required program by one confined command.
pub(super) fn required_commands(invocation: &Invocation, profile: &Profile) -> Result<DoctorCheck> {
    let required = match listed(invocation) {
        Ok(required) => required,
        Err(error) => return Ok(partly(NAME, format!("{error:#}"), "Fix what the message names.")),
    };
    let missing = match block_on(missing(profile, &required))? {
        Ok(missing) => missing,
        Err(error) => {
            let remedy = "Commands have to run first: see `commands` above.";
            return Ok(broken(NAME, format!("nothing can be looked up: {error:#}"), remedy));
        }
    };
    let told = |name: &String| format!("`{name}` ({})", required.get(name).map(|by| by.join(", ")).unwrap_or_default());
    Ok(match missing.as_slice() {
        [] => held(NAME, format!("{} of tools and skills, all found", counted(required.len() as u64, "command"))),
        missing => {
            let found = format!("missing: {}", missing.iter().map(told).collect::<Vec<_>>().join(", "));
            partly(NAME, found, "Install them, or remove the skills that need them.")
        }
    })
}

fn listed(invocation: &Invocation) -> Result<Required> {
    let workspace = open_workspace(&invocation.location)?;
    let mut required = Required::new();
    for (tool, command) in workspace.gate.required_commands() {
        required.entry(command.to_owned()).or_default().push(format!("tool {tool}"));
    }
    for (skill, interpreters) in workspace.gate.skills().map_err(anyhow::Error::from)? {
        // A skill that can't be used requires nothing; the tool `skill` names it.
        let commands = skill_commands(&skill).unwrap_or_default();
        for command in commands.into_iter().chain(interpreters) {
            let by = required.entry(command).or_default();
            let skill = format!("skill {}", skill.name);
            if !by.contains(&skill) {
                by.push(skill);
            }
        }
    }
    Ok(required)
}

async fn missing(profile: &Profile, required: &Required) -> Result<Vec<String>> {
    let sandbox = Sandbox::new(SandboxOptions { warm: 0, ..SandboxOptions::default() }).await?;
    let mut spec = LaunchSpec::shell(SCRIPT).argument("doctor");
    spec.arguments.extend(required.keys().map(Into::into));
    let child = sandbox.launch(profile, &spec).await?;
    let (output, errors) = child.read_to_end().await;
    let code = child.wait().await?.shell_code();
    anyhow::ensure!(code == 0, "the shell ended with {code}: {}", String::from_utf8_lossy(&errors).trim());
    let output = String::from_utf8(output).context("a name isn't UTF-8")?;
    Ok(output.lines().map(str::to_owned).collect())
}
