//! Images in results reach the model, as long as the model accepts them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolgate_testkit::TestWorkspace;

use crate::server::{ModelServer, Play};
use crate::world::{chat_model, controls, trail, work, world};

/// A red pixel, as PNG in base64.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// The usual world, with an image in it.
fn gallery() -> TestWorkspace {
    let world = world();
    world.file("red.png", STANDARD.decode(RED).unwrap());
    world
}

fn images(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    parts.filter_map(|part| part["image_url"]["url"].as_str()).collect()
}

#[tokio::test]
async fn an_image_is_shown_to_the_model_that_asked_for_it() {
    let world = gallery();
    let server = ModelServer::start([Play::calls("image", r#"{"path":"red.png"}"#), Play::says("Red.")]).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!(outcome.answer(), Some("Red."), "{}", outcome.summary);
    let shown = server.seen()[1].body.clone();
    assert!(matches!(images(&shown)[..], [url] if url.starts_with("data:image/png;base64,iVBORw0KGgo")), "{shown}");
}

#[tokio::test]
async fn a_model_that_refuses_images_is_asked_again_without_them() {
    let world = gallery();
    let look = || Play::calls("image", r#"{"path":"red.png"}"#);
    let refusal = json!({ "error": { "message": "This model does not support image input." } });
    let plays = [look(), Play::status("400 Bad Request", refusal), look(), Play::says("I can't see it.")];
    let server = ModelServer::start(plays).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!(outcome.answer(), Some("I can't see it."), "{}", outcome.summary);
    let shown: Vec<usize> = server.seen().iter().map(|seen| images(&seen.body).len()).collect();
    assert_eq!(shown, [0, 1, 0, 0], "neither the first image nor the second is tried again");
    assert!(server.seen()[2].body.to_string().contains("This model can't be shown images."));
    assert_eq!(trail(&world).iter().filter(|kind| *kind == "model.failed").count(), 1);
}
