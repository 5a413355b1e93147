//! Converts images for a model: upright, scaled down to a useful size, PNG or JPEG, without metadata. The dimensions in
//! a file's header are checked before anything is decoded.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Cursor, Read};

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgba, RgbaImage, imageops};
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{ErrorCode, Hands, ToolError, schemars, sha256};

use super::image_metadata::without_metadata;

/// Default pixels along the longer edge. Models scale down anything larger.
pub(crate) const DEFAULT_EDGE: u32 = 1_568;
/// Maximum pixels along the longer edge.
pub(crate) const MAX_EDGE: u32 = 8_192;
/// Maximum size of an image file in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum number of pixels.
const MAX_PIXELS: u64 = 64 * 1024 * 1024;
/// Maximum memory for decoding, in bytes.
const MAX_MEMORY: u64 = 256 * 1024 * 1024;
/// Maximum bytes of a PNG. Above that JPEG is smaller, and models accept at most 5 MB in base64.
const MAX_PNG_BYTES: usize = 3_750_000;
const JPEG_QUALITY: u8 = 85;

/// A stored image.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoredImage {
    /// Stored width in pixels.
    width: u32,
    /// Stored height in pixels.
    height: u32,
    /// Width of the upright original.
    original_width: u32,
    /// Height of the upright original.
    original_height: u32,
    /// The media type.
    mime: String,
    /// Size in bytes.
    bytes: u64,
    /// The artifact handle; also in the reply's `artifacts.refs`.
    artifact: String,
}

/// Whether these are the first bytes of a supported image.
pub(crate) fn is_image(head: &[u8]) -> bool {
    image::guess_format(head).is_ok_and(|format| format.reading_enabled())
}

/// An image file that was shown.
pub(crate) struct ShownImage {
    pub(crate) picture: StoredImage,
    /// Size of the file.
    pub(crate) bytes: u64,
    /// Hash of the file.
    pub(crate) sha256: String,
}

/// Shows an image file: converts it, and stores it for the reply.
pub(crate) async fn show(path: String, most_edge: u32, hands: &dyn Hands) -> Result<ShownImage, ToolError> {
    let work = move |hands: &dyn Hands| {
        let bytes = load(&hands.open(&path)?.file, &path)?;
        let picture = keep(&bytes, &path, most_edge, hands)?;
        let sha256 = sha256(&bytes);
        hands.saw(&hands.place(&path)?, &sha256);
        Ok(ShownImage { picture, bytes: bytes.len() as u64, sha256 })
    };
    hands.blocking(work).await
}

/// The bytes of an image file.
fn load(file: &File, path: &str) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::io(&format!("`{path}` can't be read"), &error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(path, "its file is over 64 MiB"));
    }
    Ok(bytes)
}

/// Converts an image and stores it.
fn keep(bytes: &[u8], path: &str, most_edge: u32, hands: &dyn Hands) -> Result<StoredImage, ToolError> {
    let fitted = fit(bytes, path, most_edge)?;
    let kept = hands.keep(&fitted.bytes, fitted.mime)?;
    Ok(StoredImage {
        width: fitted.size.0,
        height: fitted.size.1,
        original_width: fitted.original.0,
        original_height: fitted.original.1,
        mime: fitted.mime.to_owned(),
        bytes: kept.bytes,
        artifact: kept.id,
    })
}

/// A converted image.
#[derive(Debug, PartialEq, Eq)]
struct FittedImage<'a> {
    bytes: Cow<'a, [u8]>,
    mime: &'static str,
    size: (u32, u32),
    original: (u32, u32),
}

fn fit<'a>(bytes: &'a [u8], path: &str, most_edge: u32) -> Result<FittedImage<'a>, ToolError> {
    let format = format_of(bytes, path)?;
    let (image, was_upright) = decode(bytes, format, path)?;
    let original = (image.width(), image.height());
    let fits = was_upright && original.0.max(original.1) <= most_edge && bytes.len() <= MAX_PNG_BYTES;
    if let Some(bytes) = fits.then(|| without_metadata(bytes, format)).flatten() {
        return Ok(FittedImage { bytes, mime: format.to_mime_type(), size: original, original });
    }
    let image = shrunk(image, most_edge);
    let size = (image.width(), image.height());
    let (bytes, mime) = encoded(image, format == ImageFormat::Jpeg)
        .map_err(|fault| ToolError::internal(format!("`{path}` couldn't be re-encoded: {fault}.")))?;
    Ok(FittedImage { bytes: Cow::Owned(bytes), mime, size, original })
}

fn format_of(bytes: &[u8], path: &str) -> Result<ImageFormat, ToolError> {
    match image::guess_format(bytes) {
        Ok(format) if format.reading_enabled() => Ok(format),
        _ => Err(ToolError::new(ErrorCode::InvalidArgs, format!("`{path}` is not an image in a supported format."))
            .with_hint("PNG, JPEG, GIF, WebP, BMP and ICO are supported. Use `read` for text, SVG included.")),
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
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(fault)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS || decoder.total_bytes() > MAX_MEMORY {
        return Err(too_large(path, &format!("{width} × {height} pixels are more than 64 million")));
    }
    // An unreadable orientation is no reason to refuse the image.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(fault)?;
    image.apply_orientation(orientation);
    Ok((image, orientation == Orientation::NoTransforms))
}

/// Scales the image down. Averaging to twice the size first is cheap, and the last step stays sharp.
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
        if bytes.len() <= MAX_PNG_BYTES {
            return Ok((bytes, "image/png"));
        }
        bytes.clear();
    }
    JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY).encode_image(&flattened_on_white(image).to_rgb8())?;
    Ok((bytes, "image/jpeg"))
}

/// Puts the image on white, since JPEG has no transparency.
fn flattened_on_white(image: DynamicImage) -> DynamicImage {
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

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};
    use proptest::prelude::*;

    use super::*;

    fn spelt(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.into().write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    fn plain(width: u32, height: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |x, _| if x < width / 2 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) })
    }

    fn refusal(bytes: &[u8]) -> (ErrorCode, String) {
        let error = fit(bytes, "x", DEFAULT_EDGE).unwrap_err();
        (error.code, error.message)
    }

    #[test]
    fn every_format_is_shown() {
        for (format, mime) in [
            (ImageFormat::Png, "image/png"),
            (ImageFormat::Jpeg, "image/jpeg"),
            (ImageFormat::Gif, "image/png"),
            (ImageFormat::WebP, "image/png"),
            (ImageFormat::Bmp, "image/png"),
            (ImageFormat::Ico, "image/png"),
        ] {
            let image = RgbaImage::from_pixel(30, 20, Rgba([10, 20, 30, 255]));
            let bytes = match format {
                ImageFormat::Jpeg => spelt(plain(30, 20), format),
                _ => spelt(image, format),
            };
            assert!(is_image(&bytes[..16]), "{format:?}");
            let fitted = fit(&bytes, "x", DEFAULT_EDGE).unwrap();
            assert_eq!((fitted.mime, fitted.size, fitted.original), (mime, (30, 20), (30, 20)), "{format:?}");
            assert_eq!(image::guess_format(&fitted.bytes).unwrap().to_mime_type(), mime);
        }
    }

    #[test]
    fn what_fits_already_is_kept_as_it_is() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            let bytes = spelt(plain(30, 20), format);
            assert_eq!(fit(&bytes, "x", 30).unwrap().bytes, bytes);
        }
    }

    #[test]
    fn what_is_too_large_is_scaled_down() {
        for ((width, height), most_edge, size) in [
            ((300, 200), 100, (100, 67)),
            ((200, 300), 150, (100, 150)),
            ((1_000, 2), 100, (100, 1)),
            ((101, 101), 100, (100, 100)),
        ] {
            for format in [ImageFormat::Png, ImageFormat::Jpeg] {
                let bytes = spelt(plain(width, height), format);
                let fitted = fit(&bytes, "x", most_edge).unwrap();
                assert_eq!((fitted.size, fitted.original), (size, (width, height)));
                let shown = image::load_from_memory(&fitted.bytes).unwrap().to_rgb8();
                assert_eq!(shown.dimensions(), size);
                let (left, right) = (shown.get_pixel(2, 0), shown.get_pixel(size.0 - 3, 0));
                assert!(left[0] > 200 && left[2] < 60 && right[0] < 60 && right[2] > 200, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn a_photo_taken_sideways_is_turned() {
        let upright = spelt(plain(40, 20), ImageFormat::Jpeg);
        // EXIF with a single entry: orientation 6, turn right by a quarter.
        let exif = b"\xFF\xE1\x00\x22Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let bytes = [&upright[..2], exif, &upright[2..]].concat();
        let fitted = fit(&bytes, "x", DEFAULT_EDGE).unwrap();
        assert_eq!((fitted.mime, fitted.size, fitted.original), ("image/jpeg", (20, 40), (20, 40)));
        let shown = image::load_from_memory(&fitted.bytes).unwrap().to_rgb8();
        assert!(shown.get_pixel(10, 2)[0] > 200 && shown.get_pixel(10, 37)[2] > 200, "red was left and is above now");
    }

    #[test]
    fn transparency_survives_in_a_png_and_turns_white_in_a_jpeg() {
        let clear = RgbaImage::from_pixel(64, 64, Rgba([0, 0, 0, 0]));
        let fitted = fit(&spelt(clear, ImageFormat::Png), "x", 16).unwrap().bytes.into_owned();
        assert_eq!(image::load_from_memory(&fitted).unwrap().to_rgba8().get_pixel(8, 8)[3], 0);
        // Noise that no PNG can make small, with a clear corner.
        let mut state = 1_u32;
        let noise = RgbaImage::from_fn(1_200, 1_200, |x, y| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [red, green, blue, _] = state.to_be_bytes();
            if x < 32 && y < 32 { Rgba([0; 4]) } else { Rgba([red, green, blue, 255]) }
        });
        let (bytes, mime) = encoded(noise.into(), false).unwrap();
        assert_eq!(mime, "image/jpeg");
        let corner = *image::load_from_memory(&bytes).unwrap().to_rgb8().get_pixel(8, 8);
        assert!(corner.0.iter().all(|&channel| channel > 240), "{corner:?}");
    }

    #[test]
    fn bombs_are_refused_before_they_go_off() {
        let mut gif = spelt(RgbaImage::new(8, 8), ImageFormat::Gif);
        gif[6..10].fill(0xFF);
        let mut jpeg = spelt(plain(8, 8), ImageFormat::Jpeg);
        let frame = jpeg.windows(2).position(|marker| marker == b"\xFF\xC0").unwrap();
        jpeg[frame + 5..frame + 9].fill(0xFF);
        let mut bmp = spelt(plain(8, 8), ImageFormat::Bmp);
        bmp[18..22].copy_from_slice(&60_000_u32.to_le_bytes());
        bmp[22..26].copy_from_slice(&60_000_u32.to_le_bytes());
        for bytes in [gif, jpeg, bmp] {
            let (code, message) = refusal(&bytes);
            assert_eq!(code, ErrorCode::FileTooLarge, "{message}");
        }
    }

    #[test]
    fn what_is_damaged_or_no_image_is_told() {
        let png = spelt(plain(300, 200), ImageFormat::Png);
        let gif = spelt(RgbaImage::new(300, 200), ImageFormat::Gif);
        for (bytes, code) in [
            (&png[..40], ErrorCode::IsBinary),
            (&png[..png.len() / 2], ErrorCode::IsBinary),
            (&gif[..20], ErrorCode::IsBinary),
            (b"\xFF\xD8\xFF\xE0 nothing of the kind", ErrorCode::IsBinary),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", ErrorCode::InvalidArgs),
            (b"", ErrorCode::InvalidArgs),
            (b"II*\0\x08\0\0\0", ErrorCode::InvalidArgs), // TIFF
        ] {
            let found = refusal(bytes);
            assert_eq!(found.0, code, "{}", found.1);
        }
    }

    proptest! {
        #[test]
        fn noise_is_answered_without_a_panic(
            place in 0_usize..200,
            noise in prop::collection::vec(any::<u8>(), 1..20),
        ) {
            for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp] {
                let mut bytes = spelt(plain(16, 16), format);
                let at = place % bytes.len();
                bytes.splice(at..(at + noise.len()).min(bytes.len()), noise.iter().copied());
                let _ = fit(&bytes, "x", 8);
            }
        }
    }
}
