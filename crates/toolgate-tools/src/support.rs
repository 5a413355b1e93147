//! Code that several tools share: paging and cursors, encodings, files about to change, command results, images, and
//! the text engines behind `edit`, `patch` and every diff.

pub(crate) mod code_target;
pub(crate) mod command_output;
pub(crate) mod command_result;
pub(crate) mod cursor;
pub(crate) mod encoding;
pub(crate) mod excerpt;
pub(crate) mod hash_ahead;
pub(crate) mod image_metadata;
pub(crate) mod line_page;
pub(crate) mod media_type;
pub(crate) mod size;
pub(crate) mod skipped_matches;
pub(crate) mod stored_image;
pub(crate) mod target_file;
pub mod text;
pub(crate) mod text_page;
pub(crate) mod todo_list;
pub(crate) mod top_items;
pub(crate) mod transcoding_reader;
