//! What of a skill counts for whom: credentials for the operator's, files that are
//! read and not written, and what no mode writes that nobody saw.

use reqwest::Method;
use serde_json::{Value, json};

use super::counts::{DANGEROUS, call, names, plugin, shared};
use super::{DEPLOY, manage, put, talk, told};
use crate::api_rest::Talk;
use crate::harness::on_both;

/// Whoever writes a skill of the tenant's could name any of its credentials, so
/// that name is worth nothing, also where it stands before the operator's.
#[test]
fn credentials_are_laid_out_for_skills_that_only_the_operator_writes() {
    on_both(async |mut place| {
        let directory = tempfile::tempdir().unwrap();
        let needs = "required_credential_files: [login.json]\n";
        shared(directory.path(), "fly", needs);
        place.config.skills.external_dirs = vec![directory.path().to_owned()];
        let plugins = place.config.server.data_dir.join("plugins");
        plugin(&plugins, "forge", "ship");
        shared(&plugins.join("forge/skills"), "ship", needs);
        let web = place.serve().await;
        let tenant = web.server.scope.tenant().to_string();
        let credentials = place.config.server.data_dir.join("credentials").join(tenant);
        std::fs::create_dir_all(&credentials).unwrap();
        std::fs::write(credentials.join("login.json"), "of the tenant").unwrap();
        let owner = web.owner().await;
        let talk = talk(&web, &owner).await;
        let view = |name: &str| ("skill_view", json!({"name": name}));
        let find = || ("terminal", json!({"command": "find $TMPDIR -name login.json"}));
        let own = format!("---\nname: fly\ndescription: d\n{needs}---\nDo.\n");
        let told = told(
            &talk,
            &[
                view("fly"),
                view("forge:ship"),
                manage("create", json!({"name": "fly", "content": own})),
                view("fly"),
                find(),
            ],
        )
        .await;
        assert!(
            told[4]["output"].as_str().unwrap().contains("login.json"),
            "{}",
            told[4]
        );
        for allowed in &told[..2] {
            assert_eq!(allowed["readiness_status"], "available", "{allowed}");
            assert!(allowed["credential_files"]["login.json"].is_string(), "{allowed}");
        }
        let another = self::talk(&web, &owner).await;
        let found = self::told(&another, &[view("fly"), find()]).await;
        for refused in [&told[3], &found[0]] {
            assert!(refused["credential_files"].is_null(), "{refused}");
            assert_eq!(refused["missing_credential_files"], json!(["login.json"]), "{refused}");
        }
        assert_eq!(found[1]["output"], "", "{}", found[1]);
        web.stop().await;
    });
}

/// The reviewer of mode `smart` would see no more than the skill's name.
#[test]
fn no_mode_writes_a_dangerous_skill_that_no_person_saw() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let create = json!({"content": DANGEROUS});
        let off = Talk::new(&web, &owner, &json!({"approvals": {"mode": "off"}})).await;
        let refused = told(&off, &[manage("create", create)]).await;
        assert!(
            refused[0]["error"].as_str().unwrap().contains("skill_scan"),
            "{refused:?}"
        );
        let harmless = told(&off, &[manage("create", json!({"content": DEPLOY}))]).await;
        assert_eq!(harmless[0]["success"], true);
        let mut smart = Talk::new(&web, &owner, &json!({"approvals": {"mode": "smart"}})).await;
        let edit = call(&json!({"action": "edit", "name": "deploy", "content": DANGEROUS}));
        let asked = smart.ask(&edit).await;
        assert_eq!((&asked["reviewer"], &asked["review"]), (&json!("human"), &Value::Null));
        assert_eq!(owner.get("/v1/skills/deploy").await.expect(200)["content"], DEPLOY);
        web.stop().await;
    });
}

/// Skills from elsewhere keep files where they like.
#[test]
fn what_lies_beside_a_skill_in_no_folder_of_its_own_is_read_and_not_written() {
    on_both(async |mut place| {
        let directory = tempfile::tempdir().unwrap();
        shared(directory.path(), "pdf", "");
        let folder = directory.path().join("pdf");
        std::fs::create_dir_all(folder.join("ooxml")).unwrap();
        for file in ["forms.md", "ooxml/a.xsd", ".secret"] {
            std::fs::write(folder.join(file), file).unwrap();
        }
        place.config.skills.external_dirs = vec![directory.path().to_owned()];
        let web = place.serve().await;
        let owner = web.owner().await;
        put(&owner, "/v1/skills/deploy", DEPLOY).await.expect(201);
        let talk = talk(&web, &owner).await;
        let view = |path: &str| ("skill_view", json!({"name": "pdf", "file_path": path}));
        let absent = json!({"old_string": "not there", "new_string": "x", "file_path": "SKILL.md"});
        let told = told(
            &talk,
            &[
                ("skill_view", json!({"name": "pdf"})),
                view("forms.md"),
                view("ooxml/a.xsd"),
                view("SKILL.md"),
                view(".secret"),
                view("../deploy/SKILL.md"),
                manage("write_file", json!({"file_path": "forms.md", "file_content": "x"})),
                manage("patch", absent),
                ("skills_list", json!({"category": ""})),
            ],
        )
        .await;
        let others = json!({"other": ["forms.md", "ooxml/a.xsd"]});
        assert_eq!(told[0]["linked_files"], others);
        assert_eq!(
            (&told[1]["content"], &told[2]["content"]),
            (&json!("forms.md"), &json!("ooxml/a.xsd"))
        );
        assert!(told[3]["content"].as_str().unwrap().contains("How pdf is done"));
        for refused in &told[4..8] {
            assert_eq!(refused["success"], false, "{refused}");
        }
        assert_eq!(told[7]["file_preview"], DEPLOY);
        assert_eq!(names(&told[8]["skills"]), ["deploy", "pdf"]);
        let read = owner.get("/v1/skills/pdf").await.expect(200);
        assert_eq!(read["files"], others["other"]);
        let file = |path: &str| owner.request(Method::GET, &format!("/v1/skills/pdf/files/{path}"));
        assert_eq!(
            file("ooxml/a.xsd").send().await.unwrap().text().await.unwrap(),
            "ooxml/a.xsd"
        );
        assert_eq!(file(".secret").send().await.unwrap().status(), 404);
        web.stop().await;
    });
}
