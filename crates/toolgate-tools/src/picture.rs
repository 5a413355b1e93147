//! Images made fit for a model: upright, no larger than it can use, PNG or JPEG. Their claims about their own size are
//! checked before a byte is decoded.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Cursor, Read};

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgba, RgbaImage, imageops};
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{ErrorCode, Hands, ToolError, schemars};

/// Pixels along the longer edge, unless told otherwise. Models scale down what is larger.
pub(crate) const USUAL_EDGE: u32 = 1_568;
/// Pixels along the longer edge at the most.
pub(crate) const MOST_EDGE: u32 = 8_192;
/// Bytes of an image file.
const MOST_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Pixels of an image.
const MOST_PIXELS: u64 = 64 * 1024 * 1024;
/// Memory for what is decoded.
const MOST_MEMORY: u64 = 256 * 1024 * 1024;
/// Bytes of a PNG. Above that JPEG does better, and models take no more than 5 MB in base64.
const MOST_PNG_BYTES: usize = 3_750_000;
const JPEG_QUALITY: u8 = 85;

/// An image that was kept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Picture {
    /// Width in pixels, as kept.
    width: u32,
    /// Height in pixels, as kept.
    height: u32,
    /// Width of the upright original.
    original_width: u32,
    /// Height of the upright original.
    original_height: u32,
    /// The media type.
    mime: String,
    /// Size in bytes.
    bytes: u64,
    /// The handle under which the image is kept; it is among the reply's `artifacts.refs` too.
    artifact: String,
}

/// Whether these are the first bytes of an image that can be shown.
pub(crate) fn is_image(head: &[u8]) -> bool {
    image::guess_format(head).is_ok_and(|format| format.reading_enabled())
}

/// The bytes of an image file.
pub(crate) fn load(file: &File, path: &str) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    file.take(MOST_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::io(&format!("`{path}` can't be read"), &error))?;
    if bytes.len() as u64 > MOST_FILE_BYTES {
        return Err(too_large(path, "its file is over 64 MiB"));
    }
    Ok(bytes)
}

/// Makes an image fit and keeps it.
pub(crate) fn keep(bytes: &[u8], path: &str, most_edge: u32, hands: &Hands) -> Result<Picture, ToolError> {
    let fitted = fit(bytes, path, most_edge)?;
    let kept = hands.keep(&fitted.bytes, fitted.mime)?;
    Ok(Picture {
        width: fitted.size.0,
        height: fitted.size.1,
        original_width: fitted.original.0,
        original_height: fitted.original.1,
        mime: fitted.mime.to_owned(),
        bytes: kept.bytes,
        artifact: kept.id,
    })
}

/// An image that fits.
#[derive(Debug, PartialEq, Eq)]
struct Fitted<'a> {
    bytes: Cow<'a, [u8]>,
    mime: &'static str,
    size: (u32, u32),
    original: (u32, u32),
}

fn fit<'a>(bytes: &'a [u8], path: &str, most_edge: u32) -> Result<Fitted<'a>, ToolError> {
    let format = format_of(bytes, path)?;
    let (image, was_upright) = decode(bytes, format, path)?;
    let original = (image.width(), image.height());
    let is_common = matches!(format, ImageFormat::Png | ImageFormat::Jpeg);
    if is_common && was_upright && original.0.max(original.1) <= most_edge && bytes.len() <= MOST_PNG_BYTES {
        return Ok(Fitted { bytes: Cow::Borrowed(bytes), mime: format.to_mime_type(), size: original, original });
    }
    let image = shrunk(image, most_edge);
    let size = (image.width(), image.height());
    let (bytes, mime) = encoded(image, format == ImageFormat::Jpeg)
        .map_err(|fault| ToolError::internal(format!("`{path}` couldn't be encoded again: {fault}.")))?;
    Ok(Fitted { bytes: Cow::Owned(bytes), mime, size, original })
}

fn format_of(bytes: &[u8], path: &str) -> Result<ImageFormat, ToolError> {
    match image::guess_format(bytes) {
        Ok(format) if format.reading_enabled() => Ok(format),
        _ => Err(ToolError::new(ErrorCode::InvalidArgs, format!("`{path}` is no image of a kind that can be shown."))
            .with_hint("PNG, JPEG, GIF, WebP, BMP and ICO can be shown. Text, SVG included, is for `read`.")),
    }
}

/// The upright image, and whether it was upright before.
fn decode(bytes: &[u8], format: ImageFormat, path: &str) -> Result<(DynamicImage, bool), ToolError> {
    let fault = |fault| match fault {
        ImageError::Limits(_) => too_large(path, "it would take too much memory"),
        fault => damaged(path, format, &fault),
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(fault)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS || decoder.total_bytes() > MOST_MEMORY {
        return Err(too_large(path, &format!("{width} × {height} pixels are more than 64 million")));
    }
    // An orientation that can't be read is no reason to show nothing.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(fault)?;
    image.apply_orientation(orientation);
    Ok((image, orientation == Orientation::NoTransforms))
}

/// Scales down to fit. Averaging first to twice the size keeps a large image cheap and the last step sharp.
fn shrunk(image: DynamicImage, most_edge: u32) -> DynamicImage {
    let (width, height) = (image.width(), image.height());
    let longer = width.max(height);
    if longer <= most_edge {
        return image;
    }
    let scaled = |edge: u32| (u64::from(edge) * u64::from(most_edge)).div_ceil(u64::from(longer)).max(1) as u32;
    let (new_width, new_height) = (scaled(width), scaled(height));
    let halfway = match longer > 2 * most_edge {
        true => image.thumbnail_exact((2 * new_width).min(width), (2 * new_height).min(height)),
        false => image,
    };
    halfway.resize_exact(new_width, new_height, FilterType::CatmullRom)
}

fn encoded(image: DynamicImage, prefers_jpeg: bool) -> Result<(Vec<u8>, &'static str), ImageError> {
    let mut bytes = Vec::new();
    if !prefers_jpeg {
        let image: DynamicImage =
            if image.color().has_alpha() { image.to_rgba8().into() } else { image.to_rgb8().into() };
        image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
        if bytes.len() <= MOST_PNG_BYTES {
            return Ok((bytes, "image/png"));
        }
        bytes.clear();
    }
    JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY).encode_image(&on_white(image).to_rgb8())?;
    Ok((bytes, "image/jpeg"))
}

/// JPEG knows no transparency.
fn on_white(image: DynamicImage) -> DynamicImage {
    if !image.color().has_alpha() {
        return image;
    }
    let mut page = RgbaImage::from_pixel(image.width(), image.height(), Rgba([255; 4]));
    imageops::overlay(&mut page, &image.to_rgba8(), 0, 0);
    page.into()
}

fn too_large(path: &str, why: &str) -> ToolError {
    ToolError::new(ErrorCode::FileTooLarge, format!("`{path}` is too large to be shown: {why}."))
        .with_hint("Make a smaller copy of the image and show that.")
}

fn damaged(path: &str, format: ImageFormat, fault: &ImageError) -> ToolError {
    let kind = format.to_mime_type();
    ToolError::new(ErrorCode::IsBinary, format!("`{path}` looks like {kind} but can't be decoded: {fault}."))
        .with_hint("The file may be damaged or incomplete: make or fetch it again.")
}
