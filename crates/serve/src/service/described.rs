//! Builder methods that tools, resources, resource templates and prompts share.

/// Gives a type with a listing (`listed`) its setters; with the type of its hints, where it has any.
macro_rules! described {
    ($kind:ty, hints: $hints:ty) => {
        $crate::service::described::described!($kind);

        impl $kind {
            /// Hints for whoever shows or calls it.
            #[must_use]
            pub fn annotations(mut self, hints: $hints) -> Self {
                self.listed.annotations = Some(hints);
                self
            }
        }
    };
    ($kind:ty) => {
        impl $kind {
            /// Its name for people. Told since 2025-06-18.
            #[must_use]
            pub fn title(mut self, text: impl Into<String>) -> Self {
                self.listed.title = Some(text.into());
                self
            }

            /// Purpose, for a model.
            #[must_use]
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.listed.description = Some(text.into());
                self
            }

            /// Pictures. Told since 2025-11-25.
            #[must_use]
            pub fn icons(mut self, icons: Vec<mcpace_wire::mcp::Icon>) -> Self {
                self.listed.icons = Some(icons);
                self
            }

            /// Conditions and limits of its use.
            #[must_use]
            pub fn guard(mut self, guard: $crate::guard::Guard) -> Self {
                self.guard = Some(guard);
                self
            }

            /// Metadata.
            #[must_use]
            pub fn meta(mut self, meta: mcpace_wire::mcp::Extra) -> Self {
                self.listed.meta = Some(meta);
                self
            }
        }
    };
}

pub(super) use described;
