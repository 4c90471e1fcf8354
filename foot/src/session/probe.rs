//! A short visit to the hub, to see whether it would have us.

use footbridge_shared::id::Subject;
use footbridge_shared::message::{Bye, FootToHub, Welcome};

use super::link::CLOSE_NORMAL;
use super::wire::Wire;
use super::{cwd, first_hello, new_instance};
use crate::config::FootConfig;
use crate::connection::{Dialer, Ended, Socket};
use crate::error::FootError;
use crate::frame::Frame;
use crate::identity::Identity;

/// What came of a visit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The hub takes us, for this owner.
    Welcome {
        /// The token's subject.
        owner: Subject,
        /// The hub node.
        node: String,
    },
    /// The hub takes the token. A foot of this name runs here; to say hello would take its place.
    InUse,
    /// The hub takes the token. A foot of this name belongs to another key, as that of `footbridge up` does.
    NameTaken,
    /// There is no hub, or it is not well.
    Unreachable(String),
}

/// Connects, and says hello unless that would disturb a foot that runs.
pub(crate) async fn probe(config: &FootConfig, identity: &Identity) -> Result<Probe, FootError> {
    let dialer = Dialer::new(config)?;
    match visit(&dialer, config, identity).await {
        Ok(Some((socket, welcome))) => {
            let mut wire = Wire::new(socket);
            wire.push(Frame::new(&FootToHub::from(Bye { reason: "only a check".to_owned() })));
            wire.close(CLOSE_NORMAL, "bye").await;
            Ok(Probe::Welcome { owner: welcome.owner, node: welcome.node })
        }
        Ok(None) => Ok(Probe::InUse),
        Err(Ended::Final(FootError::NameTaken { .. })) => Ok(Probe::NameTaken),
        Err(Ended::Final(error)) => Err(error),
        Err(Ended::Superseded) => Ok(Probe::Unreachable("another process of this foot took over".to_owned())),
        Err(Ended::Lost { why, .. }) => Ok(Probe::Unreachable(why)),
    }
}

async fn visit(dialer: &Dialer, config: &FootConfig, identity: &Identity) -> Result<Option<(Socket, Welcome)>, Ended> {
    let challenged = dialer.dial().await?;
    if identity.in_use {
        challenged.leave().await;
        return Ok(None);
    }
    let instance = new_instance().map_err(Ended::Final)?;
    let hello = first_hello(config, cwd(config), identity, &instance, &challenged.nonce);
    challenged.hello(hello).await.map(Some)
}
