//! How a connection becomes a foot's: challenge, `hello`, and everything that has to hold before `welcome`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, VerifyingKey};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{FootKey, SessionId};
use footbridge_shared::message::{Challenge, FootToHub, Hello, Ping};
use footbridge_shared::proof::signed_bytes;

use super::Core;
use super::binding::ClaimError;
use super::connection::Seat;
use super::foot::Arrival;
use super::frame::{Ending, Frame};
use super::inbound::Patience;
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

impl From<Ending> for NoSeat {
    fn from(ending: Ending) -> Self {
        Self::Refused(ending)
    }
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
        seat(core, wire, principal, hello, &nonce).await
    };
    tokio::select! {
        biased;
        () = core.lifecycle.soft().cancelled() => Err(NoSeat::Refused(Ending::drained())),
        () = principal.ended.cancelled() => Err(NoSeat::Refused(Ending::ended_token())),
        () = tokio::time::sleep(core.config.hello_timeout) => {
            Err(NoSeat::Refused(Ending::timeout("the greeting was not finished in time")))
        }
        greeted = greeting => greeted,
    }
}

/// Reads until `hello`.
async fn hello<S: FootSocket>(core: &Core, wire: &mut Wire<S>) -> Result<Box<Hello>, NoSeat> {
    read(core, wire, "hello", |message| match message {
        FootToHub::Hello(hello) => Ok(hello),
        other => Err(other),
    })
    .await
}

/// Waits until the other end answers a ping of just now. A network may keep a `hello` and bring it when its connection, or
/// even its process, is long gone: nobody who is here may lose its place to that.
async fn prove_alive<S: FootSocket>(core: &Core, wire: &mut Wire<S>) -> Result<(), NoSeat> {
    let sent_ms = core.node.now_ms();
    wire.outbox().control(Ping { sent_ms });
    read(core, wire, "pong", |message| match message {
        FootToHub::Pong(pong) if pong.echo_ms == sent_ms => Ok(()),
        other => Err(other),
    })
    .await
}

/// Reads until a message that is `wanted`; gives back those that are not.
async fn read<S: FootSocket, T>(
    core: &Core,
    wire: &mut Wire<S>,
    what: &str,
    wanted: impl Fn(FootToHub) -> Result<T, FootToHub> + Send,
) -> Result<T, NoSeat> {
    let mut patience = Patience::default();
    loop {
        let frame = match wire.next().await {
            Event::Frame(frame) => frame,
            Event::Ended(ending) => return Err(NoSeat::Refused(ending)),
            Event::Lost(reason) => return Err(NoSeat::Lost(reason)),
        };
        let problem = match frame {
            Frame::Text(text) => match FootToHub::decode_frame(&String::from_utf8_lossy(&text)).map(&wanted) {
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(FootToHub::Ping(ping))) => {
                    wire.outbox().control(core.node.pong(&ping));
                    continue;
                }
                Ok(Err(FootToHub::Pong(_))) => continue,
                Ok(Err(FootToHub::Unknown(kind))) => {
                    core.totals.unknown_type(&kind);
                    continue;
                }
                Ok(Err(other)) => format!("`{}` before `{what}`", other.kind()),
                Err(error) => error.to_string(),
            },
            Frame::Binary(_) => format!("a part before `{what}`"),
            Frame::Heartbeat => continue,
            Frame::Close(_) => return Err(NoSeat::Lost(format!("it closed before `{what}`"))),
        };
        core.totals.bad_frame();
        if !patience.bear(wire.outbox(), problem) {
            return Err(NoSeat::Refused(Ending::bad_frames()));
        }
    }
}

/// Checks a `hello` and makes the connection its foot's own.
async fn seat<S: FootSocket>(
    core: &Core,
    wire: &mut Wire<S>,
    principal: &Principal,
    mut hello: Box<Hello>,
    nonce: &str,
) -> Result<Seat, NoSeat> {
    if !principal.has(Role::Foot) {
        let message = "the token does not have the role `foot`";
        return Err(Ending::unauthorized(ErrorCode::Forbidden, message).into());
    }
    if !proves(&hello.foot.id, &hello.proof, nonce) {
        return Err(Ending::refused(ErrorCode::BadProof, ErrorCode::BadProof.meaning()).into());
    }
    let scope = Scope::new(hello.tenant.clone(), hello.project.clone());
    check_scope(core, principal, &scope).await?;

    let address = (principal.subject.clone(), hello.foot.name.clone());
    let now = core.clock.now();
    check_numbers(core, &scope, &address)?;
    // The name is not held meanwhile: the other end may take its time, or be gone.
    let mut alive = false;
    let held = loop {
        let held = core.bindings.hold(&scope, &address).await;
        if alive || !core.known(&scope).is_some_and(|roster| roster.is_taken(&address, &hello.foot.id)) {
            break held;
        }
        drop(held);
        prove_alive(core, wire).await?;
        alive = true;
    };
    held.claim(&hello.foot.id, now).await.map_err(|error| match error {
        ClaimError::Taken => Ending::name_taken(&error.to_string()),
        ClaimError::Store(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the name of a foot could not be checked");
            Ending::try_later("the hub cannot check the name just now")
        }
    })?;
    let servers = core.intake.servers(&hello.foot.name, std::mem::take(&mut hello.servers));
    let session = SessionId::parse(&random_id()).map_err(|_| Ending::try_later("no session id could be made"))?;
    let roster = core.roster_of(&scope);
    roster.bind(address, hello.foot.id.clone());
    let epoch = core.next_epoch();
    let (foot, attached) = roster.attach(Arrival {
        hello,
        servers,
        owner: principal.subject.clone(),
        outbox: wire.outbox().clone(),
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
