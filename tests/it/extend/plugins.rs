//! Plugins: loaded, called, reloaded and taken away while the server runs; for
//! everybody or for one tenant; administrators only.

use hermes_server::model::principal::Scope;
use hermes_server::tool::search;
use serde_json::{Value, json};

use super::{call, plugin, program, results};
use crate::api_rest::Talk;
use crate::harness::http::Web;
use crate::harness::on_both;

const WEATHER: &str = "
name: weather
description: tells the weather
tools:
  - name: weather_now
    description: The weather at a place.
    parameters: {type: object, properties: {place: {type: string}}, required: [place]}
    effect: read
    parallel: true
    handler: {command: [./now]}
";

/// Says which place it was asked for, and where it stood.
const NOW: &str = r#"in=$(cat); place=$(sed -n 's/.*"place":"\([^"]*\)".*/\1/p' <<< "$in")
printf '{"type":"json","value":{"place":"%s","sunny":true}}' "$place""#;

async fn tools_of(talk: &Talk) -> Vec<String> {
    let tools = talk.client.get(&talk.path("/tools")).await.expect(200);
    let tools = tools["offered"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn with_weather(web: &Web) -> Talk {
    let client = web.owner().await;
    Talk::new(web, &client, &json!({"toolsets": {"enabled": ["weather"]}})).await
}

#[test]
fn a_plugin_is_called_changed_and_taken_away_while_the_server_runs() {
    on_both(async |mut place| {
        let folder = plugin(&place, "weather", WEATHER);
        program(&folder, "now", NOW);
        let web = place.serve().await;
        let client = web.owner().await;
        let listed = client.get("/v1/plugins").await.expect(200);
        assert_eq!(
            (&listed["data"][0]["status"], &listed["data"][0]["tools"]),
            (&json!("loaded"), &json!(["weather_now"]))
        );
        let mut talk = with_weather(&web).await;
        assert!(tools_of(&talk).await.contains(&"weather_now".to_owned()));
        let told = results(&mut talk, &call("weather_now", &json!({"place": "Oslo"}))).await;
        assert_eq!(told, [r#"{"place":"Oslo","sunny":true}"#]);
        let tool = client.get("/v1/tools/weather_now").await.expect(200);
        assert_eq!(
            (&tool["source"], &tool["toolset"], &tool["available"]),
            (&json!("weather"), &json!("weather"), &json!(true))
        );

        let renamed = WEATHER.replace("weather_now", "weather_today");
        std::fs::write(folder.join("plugin.yaml"), renamed).unwrap();
        client.post("/v1/plugins/reload", &json!({})).await.expect(200);
        let tools = tools_of(&talk).await;
        assert!(tools.contains(&"weather_today".to_owned()) && !tools.contains(&"weather_now".to_owned()));
        let told = results(&mut talk, &call("weather_today", &json!({"place": "Bergen"}))).await;
        assert!(told[0].contains("Bergen"), "{told:?}");

        std::fs::remove_dir_all(&folder).unwrap();
        let left = client.post("/v1/plugins/reload", &json!({})).await.expect(200);
        assert_eq!(left["data"], json!([]));
        client.get("/v1/tools/weather_today").await.problem(404, "not_found");
        web.stop().await;
    });
}

#[test]
fn what_is_wrong_with_a_plugin_is_said_and_hurts_no_other() {
    on_both(async |mut place| {
        program(&plugin(&place, "weather", WEATHER), "now", NOW);
        plugin(&place, "broken", "name: broken\ntools: [{name: x}]");
        let taken = "name: taken\ntools: [{name: read_file, handler: {command: ['true']}}]";
        plugin(&place, "taken", taken);
        let checked =
            "name: checked\ncheck: {command: [./check]}\ntools: [{name: probe, handler: {command: ['true']}}]";
        program(
            &plugin(&place, "checked", checked),
            "check",
            "echo 'not today' >&2; exit 4",
        );
        let web = place.serve().await;
        let client = web.owner().await;
        let listed = client.get("/v1/plugins").await.expect(200);
        let of = |name: &str| {
            let all = listed["data"].as_array().unwrap();
            all.iter().find(|plugin| plugin["name"] == name).unwrap().clone()
        };
        assert_eq!(of("weather")["status"], "loaded");
        assert_eq!(of("broken")["status"], "failed");
        assert!(
            of("taken")["problems"][0]
                .as_str()
                .unwrap()
                .contains("`file` has a tool of this name"),
            "{}",
            of("taken")
        );
        let probe = client.get("/v1/tools/probe").await.expect(200);
        assert_eq!(probe["available"], false);
        assert!(
            probe["reason"].as_str().unwrap().contains("exit code 4: not today"),
            "{probe}"
        );
        let reader = web.user("reader", &[Scope::SessionsRead]).await;
        reader.get("/v1/plugins").await.problem(403, "forbidden");
        reader
            .post("/v1/plugins/reload", &json!({}))
            .await
            .problem(403, "forbidden");
        web.stop().await;
    });
}

#[test]
fn an_answer_that_is_no_result_is_an_error_of_the_contract() {
    on_both(async |mut place| {
        program(&plugin(&place, "weather", WEATHER), "now", "echo '{\"sunny\": true}'");
        let web = place.serve().await;
        let mut talk = with_weather(&web).await;
        let told = results(&mut talk, &call("weather_now", &json!({"place": "Oslo"}))).await;
        let told: Value = serde_json::from_str(&told[0]).unwrap();
        assert_eq!(
            (&told["error_type"], &told["tool"]),
            (&json!("tool_result_contract"), &json!("weather_now"))
        );
        web.stop().await;
    });
}

#[test]
fn tools_of_plugins_are_searched_for_where_the_operator_wants_it() {
    on_both(async |mut place| {
        program(&plugin(&place, "weather", WEATHER), "now", NOW);
        place.config.tool_search.mode = hermes_server::config::ToolSearchMode::On;
        let web = place.serve().await;
        let mut talk = with_weather(&web).await;
        let offered = talk.client.get(&talk.path("/tools")).await.expect(200)["offered"].clone();
        let named = |name: &str| {
            offered
                .as_array()
                .unwrap()
                .iter()
                .find(|tool| tool["name"] == name)
                .cloned()
        };
        assert_eq!(named("weather_now").unwrap()["deferred"], true);
        assert_eq!(named(search::SEARCH).unwrap()["deferred"], false);
        let found = results(
            &mut talk,
            &call(search::SEARCH, &json!({"query": "weather at a place"})),
        )
        .await;
        let found: Value = serde_json::from_str(&found[0]).unwrap();
        assert_eq!(
            (&found["total_available"], &found["matches"][0]["name"]),
            (&json!(1), &json!("weather_now"))
        );
        assert_eq!(found["matches"][0]["source"], "plugin");
        let described = results(&mut talk, &call(search::DESCRIBE, &json!({"name": "weather_now"}))).await;
        assert!(described[0].contains("\"required\":[\"place\"]"), "{described:?}");
        let inner = json!({"name": "weather_now", "arguments": {"place": "Oslo"}});
        let told = results(&mut talk, &call(search::CALL, &inner)).await;
        assert!(told[0].contains("Oslo"), "{told:?}");
        let outside = json!({"name": "read_file", "arguments": {"path": "x"}});
        let refused = results(&mut talk, &call(search::CALL, &outside)).await;
        assert!(refused[0].contains("not among the tools"), "{refused:?}");
        web.stop().await;
    });
}

#[test]
fn a_tenants_plugin_is_nobody_elses() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let tenant = web.server.app.default_tenant();
        let folder = place
            .config
            .server
            .data_dir
            .join("plugins/tenants")
            .join(tenant.to_string())
            .join("weather");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("plugin.yaml"), WEATHER).unwrap();
        program(&folder, "now", NOW);
        let client = web.owner().await;
        let listed = client.post("/v1/plugins/reload", &json!({})).await.expect(200);
        assert_eq!(listed["data"][0]["tenant_id"], json!(tenant));
        let mut talk = with_weather(&web).await;
        let told = results(&mut talk, &call("weather_now", &json!({"place": "Oslo"}))).await;
        assert!(told[0].contains("Oslo"), "{told:?}");
        let engine = &web.server.engine;
        let stranger = hermes_server::base::Id::from_bits(7);
        assert!(engine.registry(tenant).get("weather_now").is_some());
        assert!(engine.registry(stranger).get("weather_now").is_none());
        web.stop().await;
    });
}
