//! A client for the official conformance suite: does what each scenario says. The suite appends the server's URL, and says
//! more in the environment.

use std::process::ExitCode;
use std::time::Duration;

use mcpace_client::{
    Asserted, Auth, Callbacks, Client, IdentityProvider, Limits, Mode, OAuthOptions, Options, RegisteredClient,
    RpcError, Secret, Target,
};
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{ElicitAction, ElicitParams, ElicitResult, ElicitationCapability, Extra, Json};
use serde_json::{Map, Value, json};

/// Limit of a client that hangs: it must end before the suite's own limit.
const LIMIT: Duration = Duration::from_secs(90);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Where the suite pretends that the client's metadata document is.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let url = std::env::args().next_back().ok_or("conformance URL")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let revision = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context)?;
    let auth =
        if scenario.starts_with("auth/") { Auth::OAuth(Box::new(oauth(&scenario, &context)?)) } else { Auth::None };
    let mode = if revision == "2026-07-28" { Mode::Auto } else { Mode::Legacy };
    // A client without callbacks holds no standalone stream open: the suite puts answers on it that don't belong there.
    let callbacks = if scenario == "sse-retry" {
        Callbacks::default()
    } else {
        Callbacks::default().elicitation(capability(), |params| async move { answer(&params) })
    };
    let limits = Limits { call_time: LIMIT, connect_time: LIMIT, ..Limits::default() };
    let options = Options { mode, auth, callbacks, limits, ..Options::default() };
    let client = Client::connect(Target::url(&url)?, options).await?;
    let tools = client.list_tools().await?;
    let asked = context["toolCalls"].as_array().cloned().unwrap_or_default();
    if asked.is_empty() {
        for tool in &tools {
            let schema: Value = tool.input_schema.parse()?;
            let mut arguments = arguments(&schema);
            if tool.name == "json_schema_echo" {
                // The other tool's schema, as it came.
                let other = tools.iter().find(|other| other.name != tool.name);
                arguments["schema"] = other.map(|other| other.input_schema.parse()).transpose()?.unwrap_or_default();
            }
            // A tool's failure, or the server's refusal, is for the suite to judge.
            drop(client.call_tool(&tool.name, &arguments).await);
        }
    }
    for call in asked {
        drop(client.call_tool(call["name"].as_str().unwrap_or_default(), &call["arguments"]).await);
    }
    client.close().await;
    Ok(())
}

fn oauth(scenario: &str, context: &Value) -> Result<OAuthOptions, Failure> {
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    let registered =
        text("client_id").map(|id| RegisteredClient { id, secret: text("client_secret").map(Secret::new) });
    Ok(OAuthOptions {
        registered,
        metadata_url: Some(METADATA.parse()?),
        client_credentials: scenario.contains("client-credentials"),
        private_key: text("private_key_pem").map(Secret::new),
        asserted: asserted(context)?,
        ..OAuthOptions::default()
    })
}

/// Another party's assertion, or the identity provider that makes one.
fn asserted(context: &Value) -> Result<Option<Asserted>, Failure> {
    let text = |name: &str| context[name].as_str().unwrap_or_default();
    if let Some(jwt) = context["valid_jwt"].as_str() {
        return Ok(Some(Asserted::Jwt(Secret::new(jwt))));
    }
    let Some(id_token) = context["idp_id_token"].as_str() else { return Ok(None) };
    Ok(Some(Asserted::ByIdentityProvider(IdentityProvider {
        token_endpoint: text("idp_token_endpoint").parse()?,
        client_id: text("idp_client_id").to_owned(),
        id_token: Secret::new(id_token),
    })))
}

/// Forms, whose defaults are applied.
fn capability() -> ElicitationCapability {
    let mut form = Extra::new();
    form.insert("applyDefaults".to_owned(), true.into());
    ElicitationCapability { form: Some(form), ..ElicitationCapability::default() }
}

/// Accepts a form as it is: with its defaults.
fn answer(params: &ElicitParams) -> Result<ElicitResult, RpcError> {
    let schema = params.requested_schema.as_ref().and_then(|schema| schema.parse::<Value>().ok()).unwrap_or_default();
    let content =
        Json::of(&arguments(&schema)).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))?;
    Ok(ElicitResult { action: ElicitAction::Accept, content: Some(content), meta: None, extra: Extra::new() })
}

/// A value for each property that has a default or is needed.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut values = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let value = match (&property["default"], property["type"].as_str()) {
            (Value::Null, _) if !required.contains(&json!(name)) => continue,
            (Value::Null, Some("number" | "integer")) => json!(1),
            (Value::Null, Some("boolean")) => json!(true),
            (Value::Null, _) => json!("text"),
            (default, _) => default.clone(),
        };
        values.insert(name.clone(), value);
    }
    Value::Object(values)
}
