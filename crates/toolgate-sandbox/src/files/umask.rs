//! The umask of this process. The kernel only tells it to whoever sets another one, which would race with other threads, so
//! it is read from `/proc`.

use std::sync::OnceLock;

/// Where `/proc` doesn't tell.
const USUAL: u32 = 0o022;

/// Permission bits that this process doesn't give to new files and directories.
pub(crate) fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        parse(&status).unwrap_or(USUAL)
    })
}

fn parse(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_umask_is_read_as_the_kernel_writes_it() {
        assert_eq!(parse("Name:\tcat\nUmask:\t0027\nState:\tR (running)\n"), Some(0o027));
        assert_eq!(parse("Name:\tcat\n"), None);
        let directory = tempfile::tempdir().unwrap();
        let made = directory.path().join("made");
        std::fs::create_dir(&made).unwrap();
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&made).unwrap());
        assert_eq!(mode & 0o777, 0o777 & !umask());
    }
}
