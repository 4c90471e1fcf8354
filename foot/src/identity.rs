//! Who a foot is: an Ed25519 key, made once for each name and kept in the user's state folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};
use footbridge_shared::id::{FootKey, FootName};
use footbridge_shared::proof::signed_bytes;

use crate::config::{FootConfig, open_to_others};
use crate::random;

/// First word of a key file: what it is, and which form it has.
const HEADER: &str = "footbridge-foot-key-v1";
/// Longest key file, in bytes.
const MAX_KEY_BYTES: u64 = 1024;

/// Why there is no identity. The key itself is never part of it.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The key file cannot be read or made.
    #[error("the key `{}` cannot be read or made: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The key file is not one.
    #[error("`{}` is no foot key; move it away to get a new identity", .0.display())]
    Malformed(PathBuf),
    /// Others can read the key.
    #[error("the key `{}` can be read by others (mode {mode}); run chmod 600 on it", path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: String,
    },
    /// A foot of this name, which nobody chose, runs on this machine.
    #[error(
        "a foot named `{0}` after its folder runs on this machine for the same project; give this one another name with \
         --name, or say --name {0} to take its place"
    )]
    InUse(FootName),
}

/// The key of one foot. While it is held, other processes of this machine can tell.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The public key: the foot's id.
    pub(crate) id: FootKey,
    key: SigningKey,
    /// Locked as long as the identity lives, if nobody held it before.
    _file: File,
    /// Another process holds it.
    pub(crate) in_use: bool,
}

impl Identity {
    /// Reads the key of a foot, and makes it if there is none.
    pub(crate) fn open(config: &FootConfig) -> Result<Self, IdentityError> {
        let (folder, path) = (config.own_folder(), config.own_file("key"));
        let io = |cause| IdentityError::Io { path: path.clone(), cause };
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&folder, &path).map_err(io)?;
                File::open(&path).map_err(io)?
            }
            opened => opened.map_err(io)?,
        };
        if let Some(mode) = open_to_others(&path) {
            return Err(IdentityError::OpenToOthers { path, mode });
        }
        let mut text = String::new();
        (&mut file).take(MAX_KEY_BYTES).read_to_string(&mut text).map_err(io)?;
        let malformed = || IdentityError::Malformed(path.clone());
        let key = parse(&text).ok_or_else(malformed)?;
        let id = URL_SAFE_NO_PAD.encode(key.verifying_key().as_bytes());
        let id = FootKey::parse(&id).map_err(|_| malformed())?;
        let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
        // A file system without locks cannot tell; then nobody holds it.
        Ok(Self { id, key, _file: file, in_use: matches!(locked, Err(rustix::io::Errno::WOULDBLOCK)) })
    }

    /// Signs the hub's challenge.
    pub(crate) fn prove(&self, nonce: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.key.sign(&signed_bytes(nonce)).to_bytes())
    }
}

fn parse(text: &str) -> Option<SigningKey> {
    let mut words = text.split_whitespace();
    let (header, key) = (words.next()?, words.next()?);
    let key: [u8; 32] = URL_SAFE_NO_PAD.decode(key).ok()?.try_into().ok()?;
    (header == HEADER && words.next().is_none()).then(|| SigningKey::from_bytes(&key))
}

/// Makes a key file whole or not at all, and never over another one: of two processes the first wins, both use its key.
fn make(folder: &Path, path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let draft = folder.join(format!(".{}.draft", random::id()));
    let made = write(&draft, &random::bytes::<32>()).and_then(|()| match std::fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    std::fs::remove_file(&draft).and(made)?;
    File::open(folder)?.sync_all()
}

fn write(path: &Path, key: &[u8; 32]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{HEADER} {}", URL_SAFE_NO_PAD.encode(key))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Token, TokenSource};
    use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};
    use footbridge_shared::id::{ProjectName, TenantName};
    use std::os::unix::fs::PermissionsExt as _;

    fn config(state: &Path, name: &str) -> FootConfig {
        let token = TokenSource::Value(Token::parse("t").unwrap());
        let (tenant, project) = (TenantName::parse("acme").unwrap(), ProjectName::parse("web").unwrap());
        let hub = "http://localhost:1".parse().unwrap();
        let config = FootConfig::new(hub, token, tenant, project, vec![], state.to_owned()).unwrap();
        FootConfig { name: FootName::parse(name).unwrap(), ..config }
    }

    #[test]
    fn a_key_is_made_once_for_each_name_and_proves_the_id() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name| Identity::open(&config(dir.path(), name)).unwrap();
        let (first, other) = (open("laptop"), open("desktop"));
        let id = first.id.clone();
        assert_ne!(id, other.id);

        let key: [u8; 32] = URL_SAFE_NO_PAD.decode(id.as_str()).unwrap().try_into().unwrap();
        let signature = URL_SAFE_NO_PAD.decode(first.prove("nonce-1")).unwrap();
        let signature = Signature::from_slice(&signature).unwrap();
        VerifyingKey::from_bytes(&key).unwrap().verify(b"footbridge.v1\nnonce-1", &signature).unwrap();

        assert!(!first.in_use && open("laptop").in_use, "the second process notices the first");
        drop(first);
        let again = open("laptop");
        assert_eq!((again.id.clone(), again.in_use), (id, false));
    }

    #[test]
    fn the_key_is_the_owners_alone_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        drop(Identity::open(&config(dir.path(), "laptop")).unwrap());
        let folder = dir.path().join("feet/acme/web");
        let path = folder.join("laptop.key");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no draft is left behind");

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = || Identity::open(&config(dir.path(), "laptop")).map(|_| ()).unwrap_err();
        assert!(matches!(open(), IdentityError::OpenToOthers { .. }));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "footbridge-foot-key-v1 short\n").unwrap();
        assert!(matches!(open(), IdentityError::Malformed(_)));
    }

    #[test]
    fn of_many_processes_that_start_at_once_all_get_the_same_key() {
        let dir = tempfile::tempdir().unwrap();
        let ids: Vec<_> = std::thread::scope(|scope| {
            let open = || Identity::open(&config(dir.path(), "laptop")).unwrap().id.clone();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}
