//! Tools of Codex that can't be had here, and why.

const NO_TEMPLATES: &str = "templates of addresses aren't offered; list_mcp_resources shows what can be read.";
const NO_GOALS: &str = "there is no goal beside the task; keep the plan with update_plan.";
const NO_CLOCK: &str = "there is no clock tool; run `sleep` or `date` with exec_command.";
const NO_SCRIPTS: &str = "there is no script engine; call the tools one by one.";
const NO_SEARCH: &str = "a web search runs at the model's provider, not here.";
const ENDED: &str = "an agent that has ended stays so; start another one with spawn_agent.";

pub(super) const UNAVAILABLE: &[(&str, &str)] = &[
    ("clock.curr_time", NO_CLOCK),
    ("clock.sleep", NO_CLOCK),
    ("create_goal", NO_GOALS),
    ("functions.exec", NO_SCRIPTS),
    ("functions.request_user_input_async", "ask with request_user_input, which waits for the answer."),
    ("functions.wait", NO_SCRIPTS),
    ("get_goal", NO_GOALS),
    ("list_mcp_resource_templates", NO_TEMPLATES),
    ("multi_agent_v1.resume_agent", ENDED),
    ("resume_agent", ENDED),
    ("send_user_message_async", "say it in your answer."),
    ("update_goal", NO_GOALS),
    ("web_search", NO_SEARCH),
];

pub(super) const UNAVAILABLE_2026_01: &[(&str, &str)] = &[
    ("dynamic", "tools can't be added while a session runs."),
    ("list_mcp_resource_templates", NO_TEMPLATES),
    ("mcp", "call the tool of a server by its name, such as `server__tool`."),
    ("web_search", NO_SEARCH),
];
