//! G17 and G18: what a server asks of the person and of the client's model.

use serde_json::{Value, json};

use super::{connected, events, recorded_end};
use crate::servers::world;

#[test]
fn g17_g18_nobody_is_asked_for_secrets_nor_without_end() {
    let world = world("");
    let mut client = connected(&world);
    let ask = |params: Value| json!({ "params": params });
    for params in [
        json!({ "mode": "form", "message": "Your password please", "requestedSchema": { "type": "object", "properties": { "x": { "type": "string" } } } }),
        json!({ "mode": "url", "message": "open", "url": "javascript:alert(1)" }),
        json!({ "mode": "url", "message": "open", "url": "http://example.com/" }),
        json!({ "mode": "url", "message": "open", "url": "https://xn--pple-43d.com/" }),
    ] {
        let refused = client.call("trial__ask", ask(params.clone())).to_string();
        assert!(refused.contains("decline"), "{params}: {refused}");
    }
    assert!(!client.heard.iter().any(|heard| heard["method"] == "elicitation/create"), "nobody was asked");
    let sampled = client.call("trial__sample", json!({})).to_string();
    assert!(sampled.contains("-32601") && sampled.contains("Sampling is off"), "{sampled}");
    let yes = json!({ "action": "accept", "content": { "choice": "Yes" } });
    client.answers.extend(std::iter::repeat_n(yes, 8));
    let nagged = client.call("trial__nag", json!({})).to_string();
    assert_eq!((nagged.matches("accept").count(), nagged.matches("cancel").count()), (5, 3), "{nagged}");
    client.end();
    let asked = events(&world).into_iter().filter(|event| event["kind"] == "question_asked").count();
    assert_eq!(asked, 5, "and none of the forms and addresses before");
    for tool in ["trial__ask", "trial__sample", "trial__nag"] {
        assert_eq!(recorded_end(&world, tool), "completed", "{tool}");
    }
}
