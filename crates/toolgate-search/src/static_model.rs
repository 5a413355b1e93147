//! Vectors for text, from weights that the user gives in the form of model2vec: a vector for each token of a vocabulary. A text's
//! vector is the sum of those of its tokens. Nothing is computed beyond that, so it takes no accelerator and little time.

use std::collections::HashMap;

use serde::Deserialize;
use toolgate_contract::counted;

use crate::index_state::content_hash;
use crate::segment::VectorForm;
use crate::word_pieces::WordPieces;

/// The most bytes of the weights, and of the tokenizer beside them.
pub(crate) const LARGEST_WEIGHTS: u64 = 512 << 20;
pub(crate) const LARGEST_TOKENIZER: u64 = 64 << 20;
/// Tokens of a text that count; the published weights are used so.
const MOST_TOKENS: usize = 512;
/// Bytes of a text that are looked at, however few tokens they are.
const MOST_TEXT: usize = 16 << 10;
/// The most numbers of a vector. The index has one for each place, a byte for each number.
const MOST_DIMENSIONS: usize = 1024;

/// A tensor in a `safetensors` file.
#[derive(Deserialize)]
struct TensorEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// The kind of numbers in a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    F64,
    F32,
    F16,
    I8,
    I64,
    I32,
}

impl NumberKind {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "F64" => Self::F64,
            "F32" => Self::F32,
            "F16" => Self::F16,
            "I8" => Self::I8,
            "I64" => Self::I64,
            "I32" => Self::I32,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 => 2,
            Self::I8 => 1,
        }
    }

    fn number(self, bytes: &[u8]) -> f32 {
        fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
            bytes.try_into().unwrap_or([0; N])
        }
        match self {
            Self::F64 => f64::from_le_bytes(array(bytes)) as f32,
            Self::F32 => f32::from_le_bytes(array(bytes)),
            Self::F16 => half(u16::from_le_bytes(array(bytes))),
            Self::I8 => f32::from(i8::from_le_bytes(array(bytes))),
            Self::I64 => i64::from_le_bytes(array(bytes)) as f32,
            Self::I32 => i32::from_le_bytes(array(bytes)) as f32,
        }
    }
}

/// A number of half precision: one bit of sign, five of exponent, ten of fraction.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1F), f32::from(bits & 0x3FF));
    let value = match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        31 => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2.0_f32.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { value } else { -value }
}

/// A tensor: where its numbers are in the file, and how many.
#[derive(Debug)]
struct Tensor {
    kind: NumberKind,
    rows: usize,
    columns: usize,
    start: usize,
}

impl Tensor {
    fn row<'a>(&self, file: &'a [u8], row: usize) -> impl Iterator<Item = f32> + use<'a> {
        let (kind, length) = (self.kind, self.columns * self.kind.bytes());
        let start = self.start + row.min(self.rows - 1) * length;
        file[start..start + length].chunks_exact(kind.bytes()).map(move |bytes| kind.number(bytes))
    }
}

/// A model that gives a vector for a text.
#[derive(Debug)]
pub(crate) struct StaticModel {
    /// Which weights these are: vectors of others can't be compared with theirs.
    pub(crate) id: u64,
    tokenizer: WordPieces,
    file: Vec<u8>,
    vectors: Tensor,
    /// What each token counts, and the row of its vector, where that isn't its number.
    counts: Option<Tensor>,
    rows: Option<Tensor>,
}

impl StaticModel {
    /// Reads `model.safetensors` and `tokenizer.json`. The error says what is wrong with them.
    pub(crate) fn read(weights: Vec<u8>, tokenizer: &[u8]) -> Result<Self, String> {
        let id = content_hash(&weights).rotate_left(1) ^ content_hash(tokenizer) | 1;
        let tokenizer = WordPieces::read(tokenizer)?;
        let mut tensors = read_tensors(&weights)?;
        let vectors = tensors.remove("embeddings").or_else(|| tensors.remove("embedding.weight"));
        let vectors = vectors.ok_or("`model.safetensors` has no tensor `embeddings`")?;
        if vectors.columns > MOST_DIMENSIONS {
            return Err(format!("its vectors have {} numbers, and at most {MOST_DIMENSIONS} fit", vectors.columns));
        }
        let (counts, rows) = (tensors.remove("weights"), tensors.remove("mapping"));
        let tokens = tokenizer.size as usize;
        let is_short = |list: &Option<Tensor>| list.as_ref().is_some_and(|list| list.rows * list.columns < tokens);
        if is_short(&counts) || is_short(&rows) || rows.is_none() && vectors.rows < tokens {
            let wanted = counted(tokens, "token");
            return Err(format!("`tokenizer.json` has {wanted}, and `model.safetensors` has fewer vectors"));
        }
        Ok(Self { id, tokenizer, file: weights, vectors, counts, rows })
    }

    /// The form of its vectors.
    pub(crate) fn form(&self) -> VectorForm {
        VectorForm { model: self.id, dimensions: self.vectors.columns as u32 }
    }

    /// How many numbers a vector has.
    pub(crate) fn dimensions(&self) -> usize {
        self.vectors.columns
    }

    /// Adds the vector of a text to `vectors`, each number in a byte: only angles count. It is all zero if no token is known.
    pub(crate) fn embed(&self, text: &str, vectors: &mut Vec<i8>) {
        let mut sum = vec![0.0_f32; self.dimensions()];
        let mut left = MOST_TOKENS;
        self.tokenizer.each_token(&text[..text.floor_char_boundary(MOST_TEXT)], |token| {
            let token = token as usize;
            let count = self.counts.as_ref().map_or(1.0, |counts| self.listed(counts, token));
            let row = self.rows.as_ref().map_or(token, |rows| self.listed(rows, token).max(0.0) as usize);
            for (sum, number) in sum.iter_mut().zip(self.vectors.row(&self.file, row)) {
                *sum += count * number;
            }
            left -= 1;
            left > 0
        });
        let largest = sum.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let scale = if largest.is_normal() { 127.0 / largest } else { 0.0 };
        vectors.extend(sum.iter().map(|number| (number * scale).round() as i8));
    }

    /// An entry of a list.
    fn listed(&self, list: &Tensor, at: usize) -> f32 {
        let start = list.start + at * list.kind.bytes();
        list.kind.number(&self.file[start..start + list.kind.bytes()])
    }
}

/// The tensors of a `safetensors` file: eight bytes of length, a table in JSON, and the numbers.
fn read_tensors(file: &[u8]) -> Result<HashMap<String, Tensor>, String> {
    let broken = || "`model.safetensors` isn't a whole safetensors file".to_owned();
    let (length, rest) = file.split_first_chunk::<8>().ok_or_else(broken)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| broken())?;
    let table = rest.get(..length).ok_or_else(broken)?;
    let mut table: HashMap<String, serde_json::Value> = serde_json::from_slice(table).map_err(|_| broken())?;
    table.remove("__metadata__");
    let mut tensors = HashMap::new();
    for (name, entry) in table {
        let entry: TensorEntry = serde_json::from_value(entry).map_err(|_| broken())?;
        let Some(kind) = NumberKind::named(&entry.dtype) else {
            return Err(format!("the numbers of its tensor `{name}` are `{}`, which isn't supported", entry.dtype));
        };
        let (rows, columns) = match entry.shape[..] {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => return Err(broken()),
        };
        let (start, end) = entry.data_offsets;
        let numbers = rows.checked_mul(columns).and_then(|count| count.checked_mul(kind.bytes()));
        let is_whole = rows > 0 && columns > 0 && end <= rest.len() - length && end.checked_sub(start) == numbers;
        if !is_whole {
            return Err(broken());
        }
        tensors.insert(name, Tensor { kind, rows, columns, start: 8 + length + start });
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokenizer() -> Vec<u8> {
        let file = json!({
            "normalizer": { "type": "BertNormalizer", "lowercase": true },
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "model": { "type": "WordPiece", "unk_token": "[UNK]", "vocab": { "[UNK]": 0, "cat": 1, "dog": 2 } },
        });
        file.to_string().into_bytes()
    }

    fn safetensors(table: &serde_json::Value, numbers: &[u8]) -> Vec<u8> {
        let table = table.to_string();
        [&(table.len() as u64).to_le_bytes(), table.as_bytes(), numbers].concat()
    }

    fn embedded(model: &StaticModel, text: &str) -> Vec<i8> {
        let mut vectors = Vec::new();
        model.embed(text, &mut vectors);
        vectors
    }

    #[test]
    fn a_text_is_the_sum_of_its_tokens_in_every_kind_of_number() {
        let floats: Vec<u8> = [9.0_f32, 9.0, 1.0, 0.0, 0.0, -0.5].iter().flat_map(|n| n.to_le_bytes()).collect();
        let halves: Vec<u8> = [0x4880_u16, 0x4880, 0x3C00, 0, 0, 0xB800].iter().flat_map(|n| n.to_le_bytes()).collect();
        let bytes: Vec<u8> = [9_i8, 9, 2, 0, 0, -1].iter().map(|n| *n as u8).collect();
        for (kind, numbers) in [("F32", floats), ("F16", halves), ("I8", bytes)] {
            let table = json!({ "embeddings": { "dtype": kind, "shape": [3, 2], "data_offsets": [0, numbers.len()] } });
            let model = StaticModel::read(safetensors(&table, &numbers), &tokenizer()).unwrap();
            assert_eq!(embedded(&model, "cat unknown"), [127, 0], "{kind}");
            assert_eq!(embedded(&model, "a Dog, cat"), [127, -64], "{kind}");
            assert_eq!(embedded(&model, "nothing"), [0, 0], "{kind}");
        }
    }

    #[test]
    fn tokens_may_share_vectors_and_count_differently() {
        let table = json!({
            "embeddings": { "dtype": "I8", "shape": [2, 2], "data_offsets": [0, 4] },
            "weights": { "dtype": "F32", "shape": [3], "data_offsets": [4, 16] },
            "mapping": { "dtype": "I32", "shape": [3], "data_offsets": [16, 28] },
        });
        let mut numbers = vec![1, 0, 0, 1];
        numbers.extend([0.0_f32, 2.0, 1.0].iter().flat_map(|n| n.to_le_bytes()));
        numbers.extend([0_i32, 1, 0].iter().flat_map(|n| n.to_le_bytes()));
        let model = StaticModel::read(safetensors(&table, &numbers), &tokenizer()).unwrap();
        assert_eq!(embedded(&model, "cat dog"), [64, 127]);
    }

    #[test]
    fn broken_weights_are_refused() {
        let table = |shape: [usize; 2], end: usize| json!({ "embeddings": { "dtype": "I8", "shape": shape, "data_offsets": [0, end] } });
        for (file, reason) in [
            (b"short".to_vec(), "whole"),
            (vec![0xFF; 64], "whole"),
            (safetensors(&table([3, 2], 6), &[0; 5]), "whole"),
            (safetensors(&table([3, 2], 7), &[0; 7]), "whole"),
            (safetensors(&table([usize::MAX, 2], 6), &[0; 6]), "whole"),
            (safetensors(&table([2, 2], 4), &[0; 4]), "fewer"),
            (safetensors(&table([3, 2000], 6000), &[0; 6000]), "2000"),
            (safetensors(&json!({}), &[]), "embeddings"),
        ] {
            let said = StaticModel::read(file, &tokenizer()).unwrap_err();
            assert!(said.contains(reason), "{said}");
        }
    }
}
