//! Runs a plan (JSON on standard input) and prints its outcome.
//!
//! ```text
//! load < plan.json
//! ```

use std::io::Read;
use std::time::Duration;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let run = mcpace_load::start_run(mcpace_load::Plan::parse(&text)?)?;
    while !run.wait(Duration::from_secs(1)) {
        for second in run.progress() {
            eprintln!("{}", serde_json::to_string(&second)?);
        }
    }
    let outcome = run.result().ok_or("a run that is over has a result")?;
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    Ok(())
}
