//! How much is fetched.

/// How much is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of a body, unpacked. The rest of a longer one is left where it is.
    pub body_bytes: u64,
    /// Redirects that are followed.
    pub redirects: usize,
    /// Headers of an answer that are told, and bytes of each.
    pub headers: usize,
    /// Bytes of one header.
    pub header_bytes: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { body_bytes: 10 << 20, redirects: 10, headers: 40, header_bytes: 1000 }
    }
}
