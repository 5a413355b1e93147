//! Limits of a fetch.

/// Limits of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of a decompressed body. The rest of a longer one isn't read.
    pub body_bytes: u64,
    /// The largest number of redirects.
    pub redirects: usize,
    /// The largest number of response headers that are returned.
    pub headers: usize,
    /// Bytes of one header.
    pub header_bytes: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { body_bytes: 10 << 20, redirects: 10, headers: 40, header_bytes: 1000 }
    }
}
