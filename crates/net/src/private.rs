//! Files that hold what passed between client and server: readable by their owner alone.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file to be written anew. One that is made here has mode 0600; an existing file, a pipe or a device keeps its own.
/// On Windows a new file has the access list of its folder, which in a user's profile admits that user alone.
///
/// # Errors
/// The file can't be made or opened.
pub fn create_private(path: &Path) -> io::Result<File> {
    private_options().create(true).truncate(true).open(path)
}

/// Creates a file with mode 0600. Replaces no file, and follows no link.
pub(crate) fn create_new_private(path: &Path) -> io::Result<File> {
    private_options().create_new(true).open(path)
}

/// Creates a folder with mode 0700, and those above it, where they are missing.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
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
