//! Removes metadata from images: comments, EXIF, XMP, profiles, and whatever follows the image. A camera, an editor or a
//! screenshot program writes text there that nobody sees in the image, compressed or in another encoding, so it can't
//! be searched for secrets.

use std::borrow::Cow;
use std::ops::Range;

use image::ImageFormat;

const PNG_SIGNATURE: usize = 8;
/// Length, type and checksum of a PNG chunk.
const PNG_FRAME: usize = 12;

/// The PNG chunks that a decoder needs, or that say how pixels are shown.
const PNG_CHUNKS: &[&[u8; 4]] =
    &[b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"sBIT", b"sRGB", b"bKGD", b"hIST", b"pHYs"];

/// The image without metadata, the same bytes if it has none. None if its structure isn't understood, or for another
/// format: then it has to be encoded again.
pub(crate) fn without_metadata(bytes: &[u8], format: ImageFormat) -> Option<Cow<'_, [u8]>> {
    let parts = match format {
        ImageFormat::Png => png_parts(bytes)?,
        ImageFormat::Jpeg => jpeg_parts(bytes)?,
        _ => return None,
    };
    let length: usize = parts.iter().map(Range::len).sum();
    match length == bytes.len() {
        true => Some(Cow::Borrowed(bytes)),
        false => Some(Cow::Owned(parts.into_iter().flat_map(|part| bytes[part].iter().copied()).collect())),
    }
}

/// The parts of a PNG that stay.
fn png_parts(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut parts: Vec<Range<usize>> = std::iter::once(0..PNG_SIGNATURE).collect();
    let mut at = PNG_SIGNATURE;
    loop {
        let length = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        let kind: &[u8; 4] = bytes.get(at + 4..at + 8)?.try_into().ok()?;
        let end = at.checked_add(PNG_FRAME)?.checked_add(length).filter(|end| *end <= bytes.len())?;
        if PNG_CHUNKS.contains(&kind) {
            parts.push(at..end);
        }
        if kind == b"IEND" {
            return Some(parts);
        }
        at = end;
    }
}

/// Markers of a JPEG, as in ITU T.81.
const START_OF_IMAGE: u8 = 0xD8;
const END_OF_IMAGE: u8 = 0xD9;
const START_OF_SCAN: u8 = 0xDA;
const COMMENT: u8 = 0xFE;
/// JFIF's header and Adobe's colour transform, without which colours would be wrong.
const NEEDED_APPLICATION_DATA: [u8; 2] = [0xE0, 0xEE];

/// The parts of a JPEG that stay.
fn jpeg_parts(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    if bytes.get(..2)? != [0xFF, START_OF_IMAGE] {
        return None;
    }
    let mut parts: Vec<Range<usize>> = std::iter::once(0..2).collect();
    let mut at = 2;
    loop {
        let [0xFF, marker] = *bytes.get(at..at + 2)? else { return None };
        let end = match marker {
            END_OF_IMAGE => at + 2,
            // Fill bytes before a marker.
            0xFF => {
                at += 1;
                continue;
            }
            _ => {
                let length = u16::from_be_bytes(bytes.get(at + 2..at + 4)?.try_into().ok()?);
                let end = at + 2 + usize::from(length).max(2);
                if marker == START_OF_SCAN { end + scan_length(bytes.get(end..)?)? } else { end }
            }
        };
        bytes.get(at..end)?;
        let is_application_data = (0xE0..=0xEF).contains(&marker) && !NEEDED_APPLICATION_DATA.contains(&marker);
        if !is_application_data && marker != COMMENT {
            parts.push(at..end);
        }
        if marker == END_OF_IMAGE {
            return Some(parts);
        }
        at = end;
    }
}

/// The length of compressed data, which ends before the next marker. A zero after `FF`, and restart markers, belong to it.
fn scan_length(bytes: &[u8]) -> Option<usize> {
    let is_marker = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0xD0..=0xD7 | 0xFF);
    bytes.windows(2).position(is_marker)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{DynamicImage, Rgb, RgbImage};

    use super::*;

    fn spelt(format: ImageFormat) -> Vec<u8> {
        let image = RgbImage::from_fn(40, 30, |x, y| Rgb([x as u8 * 6, y as u8 * 8, 90]));
        let mut bytes = Vec::new();
        DynamicImage::from(image).write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    /// The image with text in it, in each place where the format has room for some.
    fn commented(format: ImageFormat) -> Vec<Vec<u8>> {
        let plain = spelt(format);
        let chunk = |kind: &[u8]| [&9_u32.to_be_bytes()[..], kind, b"tangerine", &[0; 4]].concat();
        let segment = |marker: u8| [&[0xFF, marker, 0, 11][..], b"tangerine"].concat();
        let at = if format == ImageFormat::Png { PNG_SIGNATURE + PNG_FRAME + 13 } else { 2 };
        let inserted = match format {
            ImageFormat::Png => [b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"iCCP", b"xYzW"].map(|kind| chunk(kind)).to_vec(),
            _ => [0xFE, 0xE1, 0xE2, 0xED].map(segment).to_vec(),
        };
        let within = inserted.iter().map(|text| [&plain[..at], text, &plain[at..]].concat());
        within.chain([[&plain, &b"tangerine"[..]].concat()]).collect()
    }

    #[test]
    fn text_in_an_image_is_removed_and_its_pixels_stay() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            let plain = spelt(format);
            assert!(matches!(without_metadata(&plain, format), Some(Cow::Borrowed(_))), "{format:?}");
            for commented in commented(format) {
                assert!(commented.len() > plain.len());
                assert_eq!(without_metadata(&commented, format).as_deref(), Some(&plain[..]), "{format:?}");
            }
        }
    }

    #[test]
    fn what_is_damaged_or_of_another_format_is_not_touched() {
        let (png, jpeg) = (spelt(ImageFormat::Png), spelt(ImageFormat::Jpeg));
        for (bytes, format) in [
            (&png[..png.len() - 5], ImageFormat::Png),
            (&jpeg[..jpeg.len() - 5], ImageFormat::Jpeg),
            (&jpeg[..], ImageFormat::Png),
            (&png[..], ImageFormat::Jpeg),
            (b"", ImageFormat::Png),
            (b"GIF89a", ImageFormat::Gif),
        ] {
            assert_eq!(without_metadata(bytes, format), None, "{format:?}");
        }
    }
}
