//! `image`: shows an image to the model, made fit for it (C-58).

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_contract::{Effect, Hands, Permission, Risk, Spec, Tool, ToolError, schemars};

use crate::support::stored_image;
use crate::support::stored_image::{MOST_EDGE, StoredImage, USUAL_EDGE};

/// Shows an image.
pub struct ImageTool;

/// Which image, and how large.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the image, relative to the workspace.
    path: String,
    /// Pixels along the longer edge at the most; a larger image is scaled down.
    #[serde(default = "usual_edge")]
    #[schemars(range(min = 16, max = MOST_EDGE))]
    max_edge: u32,
}

fn usual_edge() -> u32 {
    USUAL_EDGE
}

impl Tool for ImageTool {
    type Args = Args;
    type Output = StoredImage;

    const SPEC: Spec = Spec {
        name: "image",
        version: "1.0.0",
        description: "Look at an image file (PNG, JPEG, GIF, WebP, BMP, ICO). It is turned upright and scaled down \
                      to fit; of a moving one the first frame is shown.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path)]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<StoredImage, ToolError> {
        Ok(stored_image::show(args.path, args.max_edge, hands).await?.picture)
    }
}
