//! An example of each tool's arguments, as a person would write it.

/// The tools of this program, each with arguments that it takes.
const EXAMPLES: &[(&str, &str)] = &[
    ("artifact", r#"{"id":"art_…","offset":1,"limit":200}"#),
    ("ask", r#"{"question":"Which one?","choices":[{"label":"left"},{"label":"right"}]}"#),
    ("commit", r#"{"rehearsal":"18e87300c7f5ba8b-7bfa-0"}"#),
    ("delete", r#"{"path":"old.txt"}"#),
    ("display", r#"{"content":"The tests pass.","level":"success"}"#),
    ("edit", r#"{"path":"src/main.rs","find":"hello","replace":"hello, world"}"#),
    ("fetch", r#"{"url":"https://example.com/"}"#),
    ("find", r#"{"pattern":"*.rs","order":"newest"}"#),
    ("grep", r#"{"pattern":"fn main","type":["rust"]}"#),
    ("image", r#"{"path":"docs/screen.png"}"#),
    ("lints", r#"{"paths":["src"]}"#),
    ("list", r#"{"path":"src","recursive":true}"#),
    ("lsp_calls", r#"{"path":"src/main.rs","symbol":"main","direction":"outgoing"}"#),
    ("lsp_definition", r#"{"path":"src/main.rs","line":3,"symbol":"parse"}"#),
    ("lsp_diagnostics", r#"{"paths":["src"],"severity":"error"}"#),
    ("lsp_hover", r#"{"path":"src/main.rs","symbol":"parse"}"#),
    ("lsp_references", r#"{"symbol":"Server.start"}"#),
    ("lsp_rename", r#"{"path":"src/main.rs","symbol":"parse","new_name":"parse_line","dry_run":true}"#),
    ("lsp_symbols", r#"{"path":"src/main.rs"}"#),
    ("memory", r#"{"action":"search","query":"deploy"}"#),
    ("move", r#"{"from":"notes.md","to":"docs/notes.md"}"#),
    ("notebook", r#"{"path":"analysis.ipynb"}"#),
    ("patch", r#"{"patch":"*** Begin Patch\n*** Update File: notes.md\n@@\n-old line\n+new line\n*** End Patch"}"#),
    ("plan", r#"{"steps":[{"step":"find the cause","status":"in_progress"},{"step":"fix it","status":"pending"}]}"#),
    ("process", r#"{"action":"wait","process":"proc_…","pattern":"ready in"}"#),
    ("read", r#"{"path":"README.md","offset":1,"limit":50}"#),
    ("script", r#"{"skill":"count","path":"scripts/lines.py","args":["workspace/notes.md"]}"#),
    ("search", r#"{"query":"where are retries decided"}"#),
    ("shell", r#"{"command":"cargo test 2>&1 | tail -20","timeout_seconds":300}"#),
    ("skill", r#"{"name":"count"}"#),
    ("stat", r#"{"path":"README.md"}"#),
    ("todo_read", "{}"),
    ("todo_write", r#"{"todos":[{"content":"find the cause","status":"in_progress"}]}"#),
    ("undo", r#"{"call":"call_…"}"#),
    ("write", r#"{"path":"notes.md","content":"first line\n"}"#),
];

/// An example of this tool's arguments. Other programs' tools have none.
pub(super) fn example(tool: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(name, _)| *name == tool).map(|(_, args)| *args)
}
