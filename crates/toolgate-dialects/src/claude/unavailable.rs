//! Tools of Claude Code that can't be had here, and why.

const NO_SCHEDULE: &str = "nothing runs here when nobody has asked for it.";
const NO_WORKTREES: &str = "all work happens in this workspace, and any change of it can be undone.";
const NO_PLAN_MODE: &str = "there is no plan mode; policy decides what may be changed.";
const NO_SEARCH: &str = "there is no web search; fetch an address with WebFetch.";

pub(super) const UNAVAILABLE: &[(&str, &str)] = &[
    ("CronCreate", NO_SCHEDULE),
    ("CronDelete", NO_SCHEDULE),
    ("CronList", NO_SCHEDULE),
    ("EnterPlanMode", NO_PLAN_MODE),
    ("EnterWorktree", NO_WORKTREES),
    ("ExitPlanMode", NO_PLAN_MODE),
    ("ExitWorktree", NO_WORKTREES),
    ("Monitor", "start the command in the background, and read what it has printed."),
    ("ReportFindings", "say what you found in your answer."),
    ("ScheduleWakeup", NO_SCHEDULE),
    ("WebSearch", NO_SEARCH),
    ("Workflow", "there are no workflows; start agents, or do it step by step."),
];

pub(super) const UNAVAILABLE_2_0: &[(&str, &str)] = &[
    ("EnterPlanMode", NO_PLAN_MODE),
    ("ExitPlanMode", NO_PLAN_MODE),
    ("SlashCommand", "there are no slash commands; load a skill with Skill."),
    ("WebSearch", NO_SEARCH),
    ("exit_plan_mode", NO_PLAN_MODE),
];
