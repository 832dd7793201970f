//! The model's server: whether anything answers there. No model is called and nothing is spent; with `--model`, the list of
//! models is asked for with the key.

use std::time::Duration;

use super::Report;

const AREA: &str = "model";
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks at the server of the configured model.
pub(super) async fn examine(config: &steward_orchestrator::Config, ask: bool, report: &mut Report) {
    let config = &config.model;
    let (Some(base_url), Some(name)) = (&config.base_url, &config.name) else {
        let hint = "set agent.model.base_url and agent.model.name where the server runs";
        return report.note(AREA, "none", "these settings name no model", hint);
    };
    let client = match reqwest::Client::builder().timeout(PATIENCE).build() {
        Ok(client) => client,
        Err(error) => return report.problem(AREA, name, steward_base::error_chain(&error), ""),
    };
    let base_url = base_url.trim().trim_end_matches('/');
    let request = if ask {
        let (url, headers) = config.list_request(base_url);
        let request = client.get(url);
        headers
            .into_iter()
            .fold(request, |request, (name, value)| request.header(name, value))
    } else {
        client.head(base_url)
    };
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => {
            let why = steward_base::error_chain(&error.without_url());
            let detail = format!("{base_url} does not answer: {why}");
            return report.problem(
                AREA,
                name,
                detail,
                "look at agent.model.base_url, the network and the proxy",
            );
        }
    };
    let status = answer.status();
    if !ask {
        return report.ok(AREA, name, format!("{base_url} answers"));
    }
    match status.as_u16() {
        200..=299 => {
            let listed = answer.text().await.is_ok_and(|text| lists(&text, name));
            if listed {
                report.ok(AREA, name, format!("{base_url} lists it"));
            } else {
                report.note(
                    AREA,
                    name,
                    format!("{base_url} does not list it"),
                    "look at agent.model.name",
                );
            }
        }
        401 | 403 => report.problem(
            AREA,
            name,
            format!("{base_url} refuses the key ({status})"),
            "look at agent.model.api_key",
        ),
        404 | 405 => report.note(AREA, name, format!("{base_url} answers, but lists no models"), ""),
        _ => report.problem(
            AREA,
            name,
            format!("{base_url} answers {status}"),
            "ask whoever runs it",
        ),
    }
}

/// Whether the list of models, `{"data": [{"id": …}]}`, has this one.
fn lists(text: &str, name: &str) -> bool {
    let Ok(list) = serde_json::from_str::<serde_json::Value>(text) else {
        return false;
    };
    let models = list["data"].as_array().into_iter().flatten();
    models.into_iter().any(|model| model["id"] == name)
}
