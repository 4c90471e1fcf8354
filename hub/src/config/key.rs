//! The settings: one table of their names in the file, in the environment and on the command line.

use std::fmt;

use footbridge_shared::limits::{HEARTBEAT_INTERVAL, RESUME_GRACE};

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `listen`
    Listen,
    /// `data`
    Data,
    /// `documents`
    Documents,
    /// `publicUrl`
    PublicUrl,
    /// `allowedHosts`
    AllowedHosts,
    /// `allowedOrigins`
    AllowedOrigins,
    /// `node`
    Node,
    /// `log`
    Log,
    /// `mcpCommands`
    McpCommands,
    /// `mcpVariables`
    McpVariables,
    /// `script.workers`
    ScriptWorkers,
    /// `script.perTenant`
    ScriptPerTenant,
    /// `script.queue`
    ScriptQueue,
    /// `script.idleMs`
    ScriptIdleMs,
    /// `feet.heartbeatMs`
    FeetHeartbeatMs,
    /// `feet.resumeGraceMs`
    FeetResumeGraceMs,
}

/// How a setting is written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// A text; what is relative starts from the folder of the file, or from where the hub was started.
    Path,
    Number,
    /// Texts: a list in the file, elsewhere one text with commas between them.
    Texts,
}

/// Names and default of one setting.
pub(super) struct Spec {
    /// In the file; a dot enters a section.
    pub(super) name: &'static str,
    /// In the environment.
    pub(super) variable: &'static str,
    /// On the command line, where it has one.
    pub(super) flag: Option<&'static str>,
    pub(super) kind: Kind,
}

impl Key {
    /// All settings, in the order they are shown.
    pub const ALL: [Self; 16] = [
        Self::Listen,
        Self::Data,
        Self::Documents,
        Self::PublicUrl,
        Self::AllowedHosts,
        Self::AllowedOrigins,
        Self::Node,
        Self::Log,
        Self::McpCommands,
        Self::McpVariables,
        Self::ScriptWorkers,
        Self::ScriptPerTenant,
        Self::ScriptQueue,
        Self::ScriptIdleMs,
        Self::FeetHeartbeatMs,
        Self::FeetResumeGraceMs,
    ];

    pub(super) const fn spec(self) -> Spec {
        let (name, variable, flag, kind) = match self {
            Self::Listen => ("listen", "FOOTBRIDGE_LISTEN", Some("--listen"), Kind::Text),
            Self::Data => ("data", "FOOTBRIDGE_DATA", Some("--data"), Kind::Path),
            Self::Documents => ("documents", "FOOTBRIDGE_DOCUMENTS", Some("--documents"), Kind::Path),
            Self::PublicUrl => ("publicUrl", "FOOTBRIDGE_PUBLIC_URL", None, Kind::Text),
            Self::AllowedHosts => ("allowedHosts", "FOOTBRIDGE_ALLOWED_HOSTS", None, Kind::Texts),
            Self::AllowedOrigins => ("allowedOrigins", "FOOTBRIDGE_ALLOWED_ORIGINS", None, Kind::Texts),
            Self::Node => ("node", "FOOTBRIDGE_NODE", None, Kind::Text),
            Self::Log => ("log", "FOOTBRIDGE_LOG", Some("--log"), Kind::Text),
            Self::McpCommands => ("mcpCommands", "FOOTBRIDGE_MCP_COMMANDS", Some("--mcp-commands"), Kind::Texts),
            Self::McpVariables => ("mcpVariables", "FOOTBRIDGE_MCP_VARIABLES", None, Kind::Texts),
            Self::ScriptWorkers => {
                ("script.workers", "FOOTBRIDGE_SCRIPT_WORKERS", Some("--script-workers"), Kind::Number)
            }
            Self::ScriptPerTenant => {
                ("script.perTenant", "FOOTBRIDGE_SCRIPT_PER_TENANT", Some("--script-per-tenant"), Kind::Number)
            }
            Self::ScriptQueue => ("script.queue", "FOOTBRIDGE_SCRIPT_QUEUE", Some("--script-queue"), Kind::Number),
            Self::ScriptIdleMs => ("script.idleMs", "FOOTBRIDGE_SCRIPT_IDLE_MS", None, Kind::Number),
            Self::FeetHeartbeatMs => ("feet.heartbeatMs", "FOOTBRIDGE_FEET_HEARTBEAT_MS", None, Kind::Number),
            Self::FeetResumeGraceMs => ("feet.resumeGraceMs", "FOOTBRIDGE_FEET_RESUME_GRACE_MS", None, Kind::Number),
        };
        Spec { name, variable, flag, kind }
    }

    /// What holds where nobody says anything; `None`: nothing, or something that depends on where the hub runs.
    pub(super) fn default(self) -> Option<String> {
        Some(match self {
            Self::Listen => "127.0.0.1:7800".to_owned(),
            Self::Node => "hub".to_owned(),
            Self::ScriptWorkers => "16".to_owned(),
            Self::ScriptQueue => "256".to_owned(),
            Self::ScriptIdleMs => "60000".to_owned(),
            Self::FeetHeartbeatMs => HEARTBEAT_INTERVAL.as_millis().to_string(),
            Self::FeetResumeGraceMs => RESUME_GRACE.as_millis().to_string(),
            Self::Data
            | Self::Documents
            | Self::PublicUrl
            | Self::AllowedHosts
            | Self::AllowedOrigins
            | Self::Log
            | Self::McpCommands
            | Self::McpVariables
            | Self::ScriptPerTenant => return None,
        })
    }

    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_each_other() {
        for key in Key::ALL {
            let Spec { name, variable, flag, .. } = key.spec();
            let mut words = String::new();
            for c in name.chars() {
                match c {
                    '.' => words.push('-'),
                    c if c.is_ascii_uppercase() => words.extend(['-', c.to_ascii_lowercase()]),
                    c => words.push(c),
                }
            }
            assert_eq!(variable, format!("FOOTBRIDGE_{}", words.replace('-', "_").to_uppercase()));
            if let Some(flag) = flag {
                assert_eq!(flag, format!("--{words}"));
            }
            assert_eq!(Key::by_name(name), Some(key));
        }
    }
}
