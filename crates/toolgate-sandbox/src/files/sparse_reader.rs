//! Reads a file without reading its holes, which are all zeros. `truncate -s 16G` takes no room on disk, but would take long to
//! read.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Reads a file from its beginning to its end.
pub(super) struct SparseReader<'a> {
    file: &'a File,
    position: u64,
    /// The data that was found last: everything between `position` and its start is a hole.
    data: std::ops::Range<u64>,
}

impl<'a> SparseReader<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self { file, position: 0, data: 0..0 }
    }

    /// Finds the next data at or behind the position; behind the last data comes the end of the file.
    fn find_data(&mut self) -> Result<(), Errno> {
        let start = match rustix::fs::seek(self.file, SeekFrom::Data(self.position)) {
            Ok(start) => start,
            // No more data.
            Err(Errno::NXIO) => {
                let end = rustix::fs::fstat(self.file)?.st_size as u64;
                self.data = end..end;
                return Ok(());
            }
            // A file system without holes, or a kernel file: all of it is data.
            Err(Errno::INVAL | Errno::SPIPE) => {
                self.data = self.position..u64::MAX;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.data = start..rustix::fs::seek(self.file, SeekFrom::Hole(start))?;
        Ok(())
    }
}

impl Read for SparseReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.position >= self.data.end {
            self.find_data()?;
        }
        let up_to = |end: u64| usize::try_from(end - self.position).unwrap_or(usize::MAX).min(buffer.len());
        let count = if self.position < self.data.start {
            let count = up_to(self.data.start);
            buffer[..count].fill(0);
            count
        } else {
            let count = up_to(self.data.end);
            match self.file.read_at(&mut buffer[..count], self.position) {
                Err(error) if error.kind() == ErrorKind::Interrupted => return self.read(buffer),
                read => read?,
            }
        };
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use toolgate_contract::{sha256, sha256_of};

    use super::*;

    #[test]
    fn a_file_with_holes_reads_like_any_other() {
        let block = 64 * 1024;
        let layouts: [&[(u64, &[u8])]; 6] = [
            &[],
            &[(0, b"at the beginning alone")],
            &[(5 * block, b"in the middle")],
            &[(0, b"both"), (9 * block - 4, b"ends")],
            &[(1, b"a"), (3 * block, b"b"), (3 * block + 1, b"c"), (8 * block + 7, b"d")],
            &[(0, &[7; 9 * 64 * 1024])],
        ];
        for layout in layouts {
            let file = tempfile::tempfile_in("/var/tmp").unwrap();
            file.set_len(9 * block).unwrap();
            for (at, bytes) in layout {
                file.write_all_at(bytes, *at).unwrap();
            }
            let mut plain = vec![0; 9 * block as usize];
            file.read_exact_at(&mut plain, 0).unwrap();
            let mut read = Vec::new();
            SparseReader::new(&file).read_to_end(&mut read).unwrap();
            assert!(read == plain, "{layout:?}");
            assert_eq!(sha256_of(SparseReader::new(&file)).unwrap(), (sha256(&plain), plain.len() as u64));
        }
    }

    #[test]
    fn a_file_of_nothing_but_a_hole_is_not_read() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(1 << 40).unwrap();
        let mut reader = SparseReader::new(&file);
        reader.find_data().unwrap();
        assert_eq!(reader.data, 1 << 40..1 << 40);
    }

    #[test]
    fn files_of_the_kernel_are_read_too() {
        let mut read = String::new();
        SparseReader::new(&File::open("/proc/self/comm").unwrap()).read_to_string(&mut read).unwrap();
        assert!(!read.trim().is_empty(), "{read:?}");
    }
}
