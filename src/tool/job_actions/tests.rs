//! What a model says of jobs, and what comes of it.

use super::*;
use crate::base::Id;

fn act(jobs: &mut Vec<Job>, arguments: &Value) -> Value {
    let asker = Asker {
        user: "ada",
        session: Id::from_bits(9),
        ceiling: JobCeiling::default(),
        now: Timestamp(1_800_000_000_000),
        new_id: Id::from_bits(jobs.len() as u128 + 1),
    };
    let outcome = apply(read(arguments).unwrap(), jobs, asker);
    match outcome.write {
        Some(JobWrite::Add(job)) => jobs.push(*job),
        Some(JobWrite::Change(job)) => {
            let place = jobs.iter().position(|own| own.id == job.id).unwrap();
            jobs[place] = *job;
        }
        Some(JobWrite::Remove(id)) => jobs.retain(|job| job.id != id),
        None => {}
    }
    serde_json::from_str(&outcome.told).unwrap()
}

#[test]
fn a_job_is_made_named_paused_run_and_removed() {
    let mut jobs = Vec::new();
    let made = act(
        &mut jobs,
        &json!({"action": "create", "schedule": "every 2h", "prompt": "look", "name": "News"}),
    );
    assert_eq!(
        (&made["success"], &made["repeat"], &made["job"]["state"]),
        (&json!(true), &json!("forever"), &json!("scheduled"))
    );
    assert_eq!(act(&mut jobs, &json!({"action": "list"}))["count"], 1);
    assert_eq!(
        act(&mut jobs, &json!({"action": "pause", "job_id": "news"}))["job"]["state"],
        "paused"
    );
    assert_eq!(
        act(&mut jobs, &json!({"action": "resume", "job_id": "News"}))["job"]["enabled"],
        true
    );
    assert_eq!(
        act(&mut jobs, &json!({"action": "run_now", "job_id": "News"}))["executed"],
        true
    );
    assert!(jobs[0].triggered_at.is_some());
    let updated = act(
        &mut jobs,
        &json!({"action": "update", "job_id": "News", "schedule": "0 9 * * *"}),
    );
    assert_eq!(updated["job"]["schedule"], "0 9 * * *");
    assert_eq!(
        act(&mut jobs, &json!({"action": "remove", "job_id": "News"}))["removed_job"]["name"],
        "News"
    );
    assert!(jobs.is_empty());
}

#[test]
fn an_update_takes_away_what_it_gives_as_empty_and_leaves_the_rest() {
    let mut jobs = Vec::new();
    act(
        &mut jobs,
        &json!({"action": "create", "schedule": "every 2h", "prompt": "look", "name": "News", "repeat": 3,
            "workdir": "a", "script": "s.sh", "skills": ["x"], "enabled_toolsets": ["file"], "deliver": "origin"}),
    );
    let kept = jobs[0].clone();
    act(&mut jobs, &json!({"action": "update", "job_id": "News", "name": "New"}));
    assert_eq!((&jobs[0].task, jobs[0].repeat), (&kept.task, Some(3)));
    let empty = json!({"action": "update", "job_id": "New", "workdir": "", "script": "", "skills": [],
        "enabled_toolsets": [], "repeat": 0, "attach_to_session": false});
    act(&mut jobs, &empty);
    let task = &jobs[0].task;
    assert_eq!(
        (&task.workdir, &task.script, &task.toolsets, jobs[0].repeat),
        (&None, &None, &None, None)
    );
    assert_eq!(
        (task.skills.len(), task.deliver, task.prompt.as_str()),
        (0, Deliver::Local, "look")
    );
    jobs[0].origin_session_id = None;
    act(
        &mut jobs,
        &json!({"action": "update", "job_id": "New", "deliver": "origin"}),
    );
    assert_eq!(jobs[0].origin_session_id, Some(Id::from_bits(9)), "who asks is told");
    jobs[0].last_delivery = Some(crate::model::job_task::Delivery::Failed);
    let listed = act(&mut jobs, &json!({"action": "list"}));
    assert!(listed["jobs"][0]["last_delivery_error"].is_string(), "{listed}");
}

#[test]
fn an_ambiguous_name_is_no_job_and_lists_those_of_the_name() {
    let mut jobs = Vec::new();
    for _ in 0..2 {
        act(
            &mut jobs,
            &json!({"action": "create", "schedule": "1h", "prompt": "look", "name": "twin"}),
        );
    }
    let told = act(&mut jobs, &json!({"action": "remove", "job_id": "twin"}));
    assert_eq!(
        (told["success"].as_bool(), told["matches"].as_array().unwrap().len()),
        (Some(false), 2)
    );
    let told = act(&mut jobs, &json!({"action": "remove", "job_id": "nobody"}));
    assert!(told["error"].as_str().unwrap().contains("not found"));
}

#[test]
fn what_cannot_be_done_here_is_said() {
    for (arguments, why) in [
        (json!({"action": "create", "prompt": "x"}), "schedule"),
        (json!({"action": "create", "schedule": "1h"}), "prompt"),
        (
            json!({"action": "create", "schedule": "1h", "prompt": "x", "no_agent": true}),
            "script",
        ),
        (
            json!({"action": "create", "schedule": "1h", "prompt": "x", "deliver": "telegram"}),
            "deliver",
        ),
        (json!({"action": "pause"}), "job_id"),
        (json!({"action": "dance"}), "unknown action"),
    ] {
        let text = read(&arguments).unwrap_err();
        assert!(text.contains(why), "{arguments}: {text}");
    }
    let told = act(
        &mut Vec::new(),
        &json!({"action": "create", "schedule": "1h", "prompt": "rm -rf /"}),
    );
    assert!(
        told["error"].as_str().unwrap().contains("destructive_root_rm"),
        "{told}"
    );
}
