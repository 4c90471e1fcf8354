//! A session between a foot and a hub: how it begins, shows that it lives, and ends.

use serde::{Deserialize, Serialize};

use super::{InFlight, Raw};
use crate::error::ErrorCode;
use crate::id::{FootKey, FootName, InstanceId, ProjectName, SessionId, Subject, TenantName};
use crate::limits::Limits;

/// For whom a foot works. Comes from the user's own configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Share {
    /// The token's subject alone.
    #[default]
    Owner,
    /// Everybody who may call tools in the project.
    Project,
    /// The owner and these subjects.
    Subjects(Vec<Subject>),
}

impl Share {
    /// Whether `subject` may use a foot of `owner`.
    pub fn admits(&self, owner: &Subject, subject: &Subject) -> bool {
        owner == subject
            || match self {
                Self::Owner => false,
                Self::Project => true,
                Self::Subjects(subjects) => subjects.contains(subject),
            }
    }
}

wire! {
    /// First frame of a hub.
    struct Challenge {
        /// To be signed.
        nonce: String,
    }

    /// The foot itself, in `hello`.
    struct FootInfo {
        /// Its name within (tenant, project, subject).
        name: FootName,
        /// Its Ed25519 public key, made once per foot name.
        id: FootKey,
        /// This process; new at each start.
        instance: InstanceId,
        /// The foot's version.
        version: String,
        /// Operating system, for instance `linux`.
        os: String,
        /// Processor, for instance `x86_64`.
        arch: String,
        /// The machine's name.
        hostname: String,
        /// The folder the foot was started for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    }

    /// The wish to go on with a session.
    struct Resume {
        /// The session of the last `welcome`.
        session: SessionId,
    }

    /// A local MCP server of the foot.
    struct ServerInfo {
        /// Its name: the pack of its tools.
        name: String,
        /// Its MCP capabilities, as it stated them.
        capabilities: Raw,
        /// Its instructions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
        /// The protocol version that it speaks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protocol: Option<String>,
        /// Its `serverInfo`, as it stated it: a JSON object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        info: Option<Raw>,
    }

    /// First frame of a foot, within [`crate::limits::HELLO_TIMEOUT`] of the challenge.
    struct Hello {
        /// Ed25519 signature of [`crate::proof::signed_bytes`], base64url without padding.
        proof: String,
        /// Who connects.
        foot: FootInfo,
        /// For whom it works.
        #[serde(default)]
        share: Share,
        /// The tenant it serves.
        tenant: TenantName,
        /// The project it serves.
        project: ProjectName,
        /// The session it wants to go on with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<Resume>,
        /// Calls it still knows of.
        #[serde(default)]
        in_flight: Vec<InFlight>,
        /// Its local MCP servers.
        #[serde(default)]
        servers: Vec<ServerInfo>,
        /// Calls it runs at once.
        max_concurrent: u32,
    }

    /// The answer to `hello`.
    struct Welcome {
        /// The session, for a later resume.
        session: SessionId,
        /// The token's subject: whose foot this is. The foot checks callers against it.
        owner: Subject,
        /// The hub node.
        node: String,
        /// What the hub accepts.
        limits: Limits,
        /// Whether the session that was asked for goes on.
        resumed: bool,
        /// The name as others see it, when it had to be told apart from another subject's foot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shared_name: Option<FootName>,
    }

    /// A heartbeat. A hub also sends one between `hello` and `welcome`, when the foot's name is in use by a connection that
    /// seems to be open: a `hello` that a network brings late must not take its place.
    struct Ping {
        /// The sender's clock, milliseconds; echoed in `pong`.
        sent_ms: u64,
    }

    /// The answer to `ping`.
    struct Pong {
        /// The `sentMs` of the ping.
        echo_ms: u64,
        /// The answering side's clock, milliseconds.
        sent_ms: u64,
    }

    /// The hub goes down in order: finish what runs, then reconnect, spread out.
    struct Draining {
        /// Wait at least this long, milliseconds.
        reconnect_after_ms: u64,
        /// Keep trying this long, milliseconds.
        try_for_ms: u64,
    }

    /// A newer instance of the same foot took over. Final.
    struct Superseded {}

    /// A clean leave: the foot's tools go at once.
    struct Bye {
        /// Why.
        reason: String,
    }

    /// Something is wrong with the connection; a close may follow.
    struct WireError {
        /// What.
        code: ErrorCode,
        /// The same for people.
        message: String,
    }
}
