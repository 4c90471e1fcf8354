//! How a connection becomes a foot's: challenge, `hello`, and everything that has to hold before `welcome`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, VerifyingKey};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{FootKey, SessionId};
use footbridge_shared::message::{Challenge, FootToHub, Hello};
use footbridge_shared::proof::signed_bytes;

use super::Core;
use super::binding::ClaimError;
use super::connection::Seat;
use super::foot::Arrival;
use super::frame::{Ending, Frame};
use super::inbound::Patience;
use super::outbox::Outbox;
use super::roster::{Address, Others};
use super::wire::{Event, FootSocket, Wire};
use crate::clock::{random_bytes, random_id};
use crate::domain::principal::{Principal, Role};
use crate::domain::scope::Scope;

/// Bytes of a challenge.
const NONCE_BYTES: usize = 32;

/// Why a connection came to nothing.
#[derive(Debug)]
pub(super) enum NoSeat {
    /// It gets an answer.
    Refused(Ending),
    /// There is nobody to answer.
    Lost(String),
}

/// Challenges whoever is there, checks the answer, and seats the foot.
pub(super) async fn greet<S: FootSocket>(
    core: &Core,
    wire: &mut Wire<S>,
    principal: &Principal,
) -> Result<Seat, NoSeat> {
    let nonce = URL_SAFE_NO_PAD.encode(random_bytes::<NONCE_BYTES>());
    wire.outbox().control(Challenge { nonce: nonce.clone() });
    let greeting = async {
        let hello = hello(core, wire).await?;
        seat(core, wire.outbox().clone(), principal, hello, &nonce).await.map_err(NoSeat::Refused)
    };
    tokio::select! {
        biased;
        () = core.lifecycle.soft().cancelled() => Err(NoSeat::Refused(Ending::drained())),
        () = principal.ended.cancelled() => Err(NoSeat::Refused(Ending::ended_token())),
        () = tokio::time::sleep(core.config.hello_timeout) => {
            Err(NoSeat::Refused(Ending::timeout("there was no `hello` in time")))
        }
        greeted = greeting => greeted,
    }
}

/// Reads until `hello`.
async fn hello<S: FootSocket>(core: &Core, wire: &mut Wire<S>) -> Result<Box<Hello>, NoSeat> {
    let mut patience = Patience::default();
    loop {
        let frame = match wire.next().await {
            Event::Frame(frame) => frame,
            Event::Ended(ending) => return Err(NoSeat::Refused(ending)),
            Event::Lost(reason) => return Err(NoSeat::Lost(reason)),
        };
        let problem = match frame {
            Frame::Text(text) => match FootToHub::decode_frame(&String::from_utf8_lossy(&text)) {
                Ok(FootToHub::Hello(hello)) => return Ok(hello),
                Ok(FootToHub::Ping(ping)) => {
                    wire.outbox().control(core.node.pong(&ping));
                    continue;
                }
                Ok(FootToHub::Pong(_)) => continue,
                Ok(FootToHub::Unknown(kind)) => {
                    core.totals.unknown_type(&kind);
                    continue;
                }
                Ok(other) => format!("`{}` before `hello`", other.kind()),
                Err(error) => error.to_string(),
            },
            Frame::Binary(_) => "a part before `hello`".to_owned(),
            Frame::Heartbeat => continue,
            Frame::Close(_) => return Err(NoSeat::Lost("it closed before `hello`".to_owned())),
        };
        core.totals.bad_frame();
        if !patience.bear(wire.outbox(), problem) {
            return Err(NoSeat::Refused(Ending::bad_frames()));
        }
    }
}

/// Checks a `hello` and makes the connection its foot's own.
async fn seat(
    core: &Core,
    outbox: Arc<Outbox>,
    principal: &Principal,
    hello: Box<Hello>,
    nonce: &str,
) -> Result<Seat, Ending> {
    if !principal.has(Role::Foot) {
        return Err(Ending::unauthorized(ErrorCode::Forbidden, "the token does not have the role `foot`"));
    }
    if !proves(&hello.foot.id, &hello.proof, nonce) {
        return Err(Ending::refused(ErrorCode::BadProof, ErrorCode::BadProof.meaning()));
    }
    let scope = Scope::new(hello.tenant.clone(), hello.project.clone());
    check_scope(core, principal, &scope).await?;

    let address = (principal.subject.clone(), hello.foot.name.clone());
    let now = core.clock.now();
    check_numbers(core, &scope, &address)?;
    let held = core.bindings.hold(&scope, &address).await;
    held.claim(&hello.foot.id, now).await.map_err(|error| match error {
        ClaimError::Taken => Ending::name_taken(&error.to_string()),
        ClaimError::Store(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the name of a foot could not be checked");
            Ending::try_later("the hub cannot check the name just now")
        }
    })?;
    let session = SessionId::parse(&random_id()).map_err(|_| Ending::try_later("no session id could be made"))?;
    let roster = core.roster_of(&scope);
    roster.bind(address, hello.foot.id.clone());
    let epoch = core.next_epoch();
    let (foot, attached) = roster.attach(Arrival {
        hello,
        owner: principal.subject.clone(),
        outbox,
        epoch,
        session,
        shared_name: None,
        now,
    });
    drop(held);
    core.totals.arrived(attached.resumed);
    tracing::info!(
        foot = %foot.name, owner = %foot.owner, %scope, resumed = attached.resumed, epoch, "a foot connected"
    );
    Ok(Seat { foot, roster, epoch, inherited: attached.inherited })
}

/// Bounds what one subject's feet take. Feet that arrive at the very same time may be a few more.
fn check_numbers(core: &Core, scope: &Scope, address: &Address) -> Result<(), Ending> {
    let Some(roster) = core.known(scope) else { return Ok(()) };
    let Others { connected, bound } = roster.others(address);
    let limit = core.config.max_names;
    if bound.is_some_and(|bound| bound >= limit) {
        let message = format!("the token's subject has bound {limit} names of feet here; release some of them");
        return Err(Ending::refused(ErrorCode::Overloaded, message));
    }
    let limit = core.config.max_connections;
    if connected >= limit { Err(Ending::too_many_feet(limit)) } else { Ok(()) }
}

/// One answer for a scope that does not exist and one that the token does not reach.
async fn check_scope(core: &Core, principal: &Principal, scope: &Scope) -> Result<(), Ending> {
    let unknown = || Ending::refused(ErrorCode::UnknownScope, ErrorCode::UnknownScope.meaning());
    // A foot serves a project; the tenant's own layer is none.
    if scope.project.is_tenant_layer() || !principal.reach.covers(scope) {
        return Err(unknown());
    }
    match core.scopes.exists(scope).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(unknown()),
        Err(failure) => {
            tracing::error!(%scope, %failure, cause = failure.cause, "the scope of a foot could not be checked");
            Err(Ending::try_later("the hub cannot check the scope just now"))
        }
    }
}

/// Whether whoever sent this proof holds the private half of the key.
fn proves(key: &FootKey, proof: &str, nonce: &str) -> bool {
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    let key = decoded(key.as_str()).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let key = key.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
    let signature = decoded(proof).and_then(|bytes| Signature::from_slice(&bytes).ok());
    key.zip(signature).is_some_and(|(key, signature)| key.verify_strict(&signed_bytes(nonce), &signature).is_ok())
}
