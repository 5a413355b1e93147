//! Every name that a client's model may call: mapped to a native tool, or refused with a reason. A name that is in neither list
//! would be answered as if nobody had ever heard of it.

use std::collections::BTreeSet;

use toolgate_dialects::{DIALECTS, Dialect, dialect};

/// The tools of each client, whether they are offered at once, by a flag, or only by older versions of the same client.
const NAMES: &[(&str, &str)] = &[
    (
        "claude",
        "Agent AskUserQuestion Bash CronCreate CronDelete CronList Edit EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Glob \
         Grep LSP ListAgents ListMcpResourcesTool Monitor MultiEdit NotebookEdit Read ReadMcpResourceTool ReportFindings \
         ScheduleWakeup SendMessage Skill TaskCreate TaskGet TaskList TaskStop TaskUpdate TodoWrite ToolSearch WebFetch WebSearch \
         Workflow Write",
    ),
    (
        "claude-2.0",
        "AskUserQuestion Bash BashOutput Edit EnterPlanMode ExitPlanMode Glob Grep KillBash KillShell LS LSP ListMcpResourcesTool \
         MultiEdit NotebookEdit NotebookRead Read ReadMcpResourceTool Skill SlashCommand Task TaskOutput TodoRead TodoWrite \
         WebFetch WebSearch Write exit_plan_mode",
    ),
    (
        "codex",
        "apply_patch clock.curr_time clock.sleep close_agent collaboration.followup_task collaboration.interrupt_agent \
         collaboration.list_agents collaboration.send_message collaboration.spawn_agent collaboration.wait_agent create_goal \
         exec_command followup_task functions.exec functions.request_user_input_async functions.wait get_goal interrupt_agent \
         list_agents list_mcp_resource_templates list_mcp_resources multi_agent_v1.close_agent multi_agent_v1.resume_agent \
         multi_agent_v1.send_input multi_agent_v1.spawn_agent multi_agent_v1.wait_agent read_mcp_resource request_user_input \
         resume_agent send_input send_message send_user_message_async spawn_agent tool_search update_goal update_plan view_image \
         wait_agent web_search write_stdin",
    ),
    (
        "codex-2026-01",
        "apply_patch close_agent container.exec dynamic exec_command grep_files list_dir list_mcp_resource_templates \
         list_mcp_resources local_shell mcp read_file read_mcp_resource request_user_input send_input shell shell_command \
         spawn_agent update_plan view_image wait web_search write_stdin",
    ),
    (
        "gemini",
        "activate_skill ask_user enter_plan_mode exit_plan_mode glob google_web_search grep_search invoke_agent \
         list_background_processes list_directory list_mcp_resources read_background_output read_file read_many_files \
         read_mcp_resource replace run_shell_command save_memory search_file_content update_topic web_fetch write_file write_todos",
    ),
    (
        "opencode",
        "apply_patch bash edit glob grep list list_mcp_resource_templates list_mcp_resources lsp plan_exit question read \
         read_mcp_resource skill task todowrite webfetch write",
    ),
    (
        "clude",
        "apply_patch codebase_search delete_file display glob_file_search grep list_dir read_file read_lints run_terminal_cmd \
         update_memory",
    ),
    ("skills", "delete_file grep list_dir network_request read_file run_script write_file"),
    (
        "coder",
        "bash glob grep list lsp_definition lsp_diagnostics lsp_hover patch read skill task todoread todowrite write",
    ),
    ("autonous", "bash edit find grep ls read write"),
];

/// Names under which later or earlier versions have the same tool; they do no harm.
fn names_of_other_versions(dialect: &Dialect) -> BTreeSet<&'static str> {
    let all = NAMES.iter().filter(|(name, _)| dialect.name.starts_with(name.split('-').next().unwrap_or(name)));
    all.flat_map(|(_, names)| names.split_whitespace()).collect()
}

#[test]
fn every_dialect_is_listed_here() {
    let listed: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    assert_eq!(DIALECTS.iter().map(|dialect| dialect.name).collect::<Vec<_>>(), listed);
}

#[test]
fn every_name_is_mapped_or_refused_with_a_reason() {
    for (name, names) in NAMES {
        let dialect = dialect(name).unwrap();
        let refused: BTreeSet<&str> = dialect.unavailable.iter().map(|(name, _)| *name).collect();
        let mapped: BTreeSet<&str> = dialect.names().collect();
        assert_eq!(mapped.intersection(&refused).count(), 0, "{name} maps what it refuses");
        let known: BTreeSet<&str> = mapped.union(&refused).copied().collect();
        let missing: Vec<&str> = names.split_whitespace().filter(|name| !known.contains(name)).collect();
        assert!(missing.is_empty(), "{name} forgets {missing:?}");
        let listed = names_of_other_versions(dialect);
        let unlisted: Vec<&&str> = known.iter().filter(|name| !listed.contains(**name)).collect();
        assert!(unlisted.is_empty(), "{name} has {unlisted:?}, which isn't listed here");
        for (tool, reason) in dialect.unavailable {
            assert!(reason.len() > 10 && reason.ends_with('.'), "{name} {tool}: {reason}");
        }
    }
}
