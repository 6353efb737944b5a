//! The profiles: remote servers that people know, as data.
//!
//! A profile is a row of decisions (authorization, sessions, how replies end), not code of its own.
//! The server reads the row; nothing else in the crate asks for a profile's name.

use std::fmt;
use std::str::FromStr;

use crate::nearest::{nearest_name, printable_name};
use crate::tools::Tool;

/// A server whose behaviour a target takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// Stateless, no authorization, an SSE reply ends with its result: what the official Python
    /// SDK's server does when it is told to be stateless.
    #[default]
    Simple,
    /// OAuth 2.1, sessions, a standalone GET stream, and replies whose SSE stream stays open for
    /// [`Options::hold`](crate::Options::hold) after the result.
    Notion,
    /// A bearer token that must equal an expected one; replies end at once.
    Github,
    /// [`Profile::Simple`] with the tool `answer`, whose caller chooses when the parts of the reply come.
    Limits,
}

impl Profile {
    /// Every profile, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Simple, Self::Notion, Self::Github, Self::Limits];

    /// The name that users type.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Notion => "notion",
            Self::Github => "github",
            Self::Limits => "limits",
        }
    }

    /// Behaviour of the profile.
    pub(crate) fn behaviour(self) -> Behaviour {
        match self {
            Self::Limits => Behaviour { tools: &Tool::ALL, ..Self::Simple.behaviour() },
            Self::Simple => Behaviour {
                authorization: Authorization::None,
                sessions: false,
                standalone_stream: false,
                holds_replies_open: false,
                response: ResponseMode::Sse,
                tools: &Tool::COMMON,
            },
            Self::Notion => Behaviour {
                authorization: Authorization::OAuth,
                sessions: true,
                standalone_stream: true,
                holds_replies_open: true,
                response: ResponseMode::Sse,
                tools: &Tool::COMMON,
            },
            Self::Github => Behaviour {
                authorization: Authorization::Bearer,
                sessions: false,
                standalone_stream: false,
                holds_replies_open: false,
                response: ResponseMode::Sse,
                tools: &Tool::COMMON,
            },
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == name).ok_or_else(|| UnknownProfile {
            name: printable_name(name),
            nearest: nearest_name(name, Self::ALL.map(Self::as_str)),
        })
    }
}

/// No profile has this name. The message names the nearest one and all there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProfile {
    /// The given name, shortened and without control characters.
    pub name: String,
    /// The profile that was probably meant.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for UnknownProfile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown profile `{}`", self.name)?;
        if let Some(nearest) = self.nearest {
            write!(formatter, "; did you mean `{nearest}`?")?;
        }
        let all = Profile::ALL.map(Profile::as_str).join(", ");
        write!(formatter, " (profiles: {all})")
    }
}

impl std::error::Error for UnknownProfile {}

/// How a request's result is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResponseMode {
    /// `application/json`, one body with its length.
    Json,
    /// `text/event-stream`, the result as one event.
    Sse,
}

/// One profile's row of decisions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behaviour {
    pub(crate) authorization: Authorization,
    pub(crate) sessions: bool,
    pub(crate) standalone_stream: bool,
    pub(crate) holds_replies_open: bool,
    pub(crate) response: ResponseMode,
    pub(crate) tools: &'static [Tool],
}

/// Credentials that a request needs to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorization {
    None,
    Bearer,
    OAuth,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_read_back_from_its_name() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
    }

    #[test]
    fn an_unknown_profile_names_the_nearest_and_all() {
        let error = "notoin".parse::<Profile>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown profile `notoin`; did you mean `notion`? (profiles: simple, notion, github, limits)"
        );
        let error = "postgresql".parse::<Profile>().unwrap_err();
        assert_eq!(error.to_string(), "unknown profile `postgresql` (profiles: simple, notion, github, limits)");
    }
}
