//! Files with secrets: nobody but their owner may read them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use npcc_config::regular::{self, ReadError};

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Reason why a secret is not used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(String, ReadError),
    /// Others may read the file.
    #[error("{0} may be read by others (mode {1:04o})")]
    Open(String, u32),
    /// The file is empty or not UTF-8.
    #[error("{0} holds no text")]
    NoText(String),
}

impl SecretError {
    /// Returns the command or advice that mends it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable(..) => {
                "check the path, and that the user npcc-feed owns the file".to_owned()
            }
            Self::Open(path, _) => format!("chmod 0600 {path}"),
            Self::NoText(_) => {
                "write the secret into it, as one line or as nsc wrote it".to_owned()
            }
        }
    }
}

/// Returns the file of this name that the service manager handed over (systemd's `LoadCredential`), if there is one. The folder is the
/// service's alone, whatever the mode of the file.
fn handed_over(path: &Path) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("CREDENTIALS_DIRECTORY")?);
    Some(folder.join(path.file_name()?)).filter(|file| file.exists())
}

/// Reads a secret; the end of the last line is removed. A file of the same name that the service manager handed over comes first.
///
/// # Errors
/// [`SecretError`].
pub fn read_secret(path: &Path) -> Result<String, SecretError> {
    let credential = handed_over(path);
    let path = credential.as_deref().unwrap_or(path);
    let name = path.display().to_string();
    let unreadable = |error: ReadError| SecretError::Unreadable(name.clone(), error);
    let file = regular::open(path).map_err(unreadable)?;
    let permissions = file.metadata().map_err(|error| unreadable(error.into()))?;
    let mode = permissions.permissions().mode() & 0o7777;
    if credential.is_none() && mode & OTHERS != 0 {
        return Err(SecretError::Open(name, mode));
    }
    let bytes = regular::read_from(file).map_err(unreadable)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    match text.trim_end() {
        "" => Err(SecretError::NoText(name)),
        text => Ok(text.to_owned()),
    }
}
