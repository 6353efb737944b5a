//! Notation of the message types: that of the specification's schema.

/// Declares message types, which are read from JSON and written as JSON.
///
/// - Members are in camel case on the wire.
/// - `name?: T` is an optional member. It is an `Option<T>`, and left out where it is `None`.
/// - A struct `with _meta` has that member, as the field `meta`.
/// - Unknown members are kept in the field `extra` and written again.
macro_rules! shapes {
    ($(
        $(#[$attribute:meta])*
        pub struct $name:ident $(with _meta $($meta:lifetime)?)? {
            $($(#[$of_member:meta])* $member:ident $(? $($optional:lifetime)?)? : $type:ty,)*
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(
                $(#[$of_member])*
                $(#[serde(skip_serializing_if = "Option::is_none")] $($optional)?)?
                pub $member: $(Option< $($optional)?)? $type $(> $($optional)?)?,
            )*
            $(
                /// Metadata.
                #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
                pub meta: Option<$crate::mcp::Extra>,
                $($meta)?
            )?
            /// Unknown members.
            #[serde(flatten)]
            pub extra: $crate::mcp::Extra,
        }
    )*};
}

pub(super) use shapes;
