//! Shows plans and todo lists as checklists.

use serde_json::Value;

use super::{BOLD, DIM, GREEN, paint, plain};

/// The lines of a plan or a todo list; none for anything else.
pub(crate) fn checklist(payload: &Value) -> Vec<String> {
    let list = |field: &str| payload.get(field).and_then(Value::as_array);
    let Some(items) = list("steps").or_else(|| list("todos")) else { return Vec::new() };
    let text = |item: &Value| {
        let text = ["step", "content"].iter().find_map(|field| item.get(*field)?.as_str());
        plain(text.unwrap_or_default()).replace('\n', " ")
    };
    let line = |item: &Value| match item.get("status").and_then(Value::as_str) {
        Some("completed") => format!("{} {}", paint(GREEN, "☑"), paint(DIM, text(item))),
        Some("in_progress") => format!("▸ {}", paint(BOLD, text(item))),
        Some("cancelled") => paint(DIM, format!("✗ {}", text(item))),
        _ => format!("☐ {}", text(item)),
    };
    items.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plans_and_todos_look_the_same() {
        let shown = |payload: Value| -> Vec<String> {
            checklist(&payload).iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
        };
        let steps = json!([{ "step": "look", "status": "completed" }, { "step": "fix", "status": "in_progress" }]);
        assert_eq!(shown(json!({ "steps": steps })), ["☑ look", "▸ fix"]);
        assert_eq!(shown(json!({ "todos": [{ "content": "test", "status": "pending" }] })), ["☐ test"]);
        assert_eq!(shown(json!({ "stdout": "" })), Vec::<String>::new());
    }
}
