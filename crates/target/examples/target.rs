//! A target on its own: `cargo run -p mcpace-target --example target -- notion --hold 2 tool=10ms`.
//!
//! Prints its URL and, after a line on stdin or its end, what it has seen.

use std::time::Duration;

use mcpace_target::{Faults, Options, Profile, ResponseMode, Secret, Target};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let profile: Profile = arguments.next().unwrap_or_else(|| "simple".to_owned()).parse()?;
    let mut options =
        Options { bearer_token: std::env::var("MCPACE_TARGET_TOKEN").ok().map(Secret::new), ..Options::new(profile) };
    let mut faults = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--hold" => {
                let seconds = arguments.next().ok_or("--hold needs seconds")?;
                options.hold = Duration::try_from_secs_f64(seconds.parse()?)?;
            }
            "--port" => options.port = arguments.next().ok_or("--port needs a number")?.parse()?,
            "--tls" => options.tls = true,
            "--json" => options.response = Some(ResponseMode::Json),
            "--server-timing" => options.server_timing = true,
            _ => faults.push(argument),
        }
    }
    options.faults = Faults::parse(faults)?;
    let target = Target::start(options).await?;
    println!("{}", target.url());
    if let Some(certificate) = target.certificate_pem() {
        println!("{certificate}");
    }
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    println!("{}", serde_json::to_string_pretty(&target.counters())?);
    target.stop().await;
    Ok(())
}
