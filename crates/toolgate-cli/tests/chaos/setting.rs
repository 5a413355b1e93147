//! The settings that every sequence of operations has to hold in: who runs it, on which file system, with how much room
//! for undo, and whether commands work on overlays.

/// One combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) is_root: bool,
    pub(crate) is_tmpfs: bool,
    pub(crate) has_small_quota: bool,
    pub(crate) has_overlay: bool,
}

/// Bytes for undo where there is little room: a few files of the larger kind fill it.
const SMALL_QUOTA: u64 = 60_000;

/// Seconds that a call may take.
const CALL_SECONDS: u64 = 3_600;

impl Setting {
    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..16).map(|bits| Self {
            is_root: bits & 1 == 0,
            is_tmpfs: bits & 2 != 0,
            has_small_quota: bits & 4 != 0,
            has_overlay: bits & 8 == 0,
        })
    }

    /// The name that selects it, such as `root-disk-usual-overlay`.
    pub(crate) fn name(self) -> String {
        let word = |is: bool, yes, no| if is { yes } else { no };
        [
            word(self.is_root, "root", "user"),
            word(self.is_tmpfs, "tmpfs", "disk"),
            word(self.has_small_quota, "small", "usual"),
            word(self.has_overlay, "overlay", "in_place"),
        ]
        .join("-")
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|setting| setting.name() == name)
    }

    /// The user's configuration. A call may take long: a machine that is busy with others isn't what is tried here.
    pub(crate) fn config(self) -> String {
        let quota = if self.has_small_quota { format!("[undo]\nquota_bytes = {SMALL_QUOTA}\n") } else { String::new() };
        let overlay = if self.has_overlay { "on" } else { "off" };
        format!(
            "preset = 'full'\n[commands]\noverlay = '{overlay}'\n[limits]\ntimeout_seconds = {CALL_SECONDS}\n{quota}"
        )
    }
}
