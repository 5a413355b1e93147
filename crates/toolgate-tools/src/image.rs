//! `image`: shows an image to the model, converted to a form that models accept.

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_contract::{Effect, Hands, Permission, ResultForm, Risk, Spec, Tool, ToolError, schemars};

use crate::support::stored_image;
use crate::support::stored_image::{DEFAULT_EDGE, MAX_EDGE, StoredImage};

/// Shows an image.
pub struct ImageTool;

/// The image and its size.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Relative to the workspace.
    path: String,
    /// Pixels along the longer edge.
    #[serde(default = "default_edge")]
    #[schemars(range(min = 16, max = MAX_EDGE))]
    max_edge: u32,
}

fn default_edge() -> u32 {
    DEFAULT_EDGE
}

impl Tool for ImageTool {
    type Args = Args;
    type Output = StoredImage;

    const SPEC: Spec = Spec {
        name: "image",
        version: "1.0.0",
        description: "Look at an image file (PNG, JPEG, GIF, WebP, BMP, ICO), upright and scaled down; of an \
                      animation, the first frame.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    const RESULT_FORM: ResultForm = ResultForm::Content;

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path)]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<StoredImage, ToolError> {
        Ok(stored_image::show(args.path, args.max_edge, hands).await?.picture)
    }
}
