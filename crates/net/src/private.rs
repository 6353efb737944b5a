//! Files that hold what passed between client and server: readable by their owner alone.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file to be written anew. One that is made here has mode 0600; an existing file, a pipe or a device keeps its own.
/// On Windows a new file has the access list of its folder, which in a user's profile admits that user alone.
///
/// # Errors
/// The file can't be made or opened.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_new_file_is_its_owners_alone_and_an_existing_one_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        create_private(&path).unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        create_private(&path).unwrap();
        assert_eq!(mode(), 0o640);
    }
}
