//! Protocol versions.

/// A revision of MCP that is spoken here, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The first.
    V2024_11_05,
    /// Streamable HTTP; batches.
    V2025_03_26,
    /// Structured results, elicitation; no batches.
    V2025_06_18,
    /// Icons, sampling with tools, elicitation by URL.
    V2025_11_25,
    /// No sessions: every request says who asks.
    V2026_07_28,
}

/// How client and server come to know each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// `initialize` opens a session, in which the server may ask the client.
    Session,
    /// Each request says who asks; what a server wants to know it answers with, and is asked again.
    Stateless,
}

impl Version {
    /// All, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest that `initialize` negotiates.
    pub const LATEST_WITH_SESSION: Self = Self::V2025_11_25;
    /// The newest.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The text on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The version of that text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// How its sessions begin.
    pub const fn lifecycle(self) -> Lifecycle {
        match self {
            Self::V2026_07_28 => Lifecycle::Stateless,
            _ => Lifecycle::Session,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
