//! What calls made: results that are kept whole, and files of the workspace by
//! path and hash. Written in the transaction of the result
//! it belongs to, gone with its session.

use serde_json::json;

use super::scope::Rows;
use super::{Row, StoreError};
use crate::model::artifact::{Artifact, ArtifactKind, NewArtifact};
use crate::model::id::{ArtifactId, SessionId};
use crate::model::record::SessionRecord;

impl Rows<'_> {
    pub async fn add_artifacts(&mut self, session: &SessionRecord, new: &[NewArtifact]) -> Result<(), StoreError> {
        const SQLITE: &str = "
            insert into artifact (tenant_id, session_id, user_id, artifact_id, turn_id, call_id, tool, name,
                media_type, size, sha256, content, created_at, path)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        const POSTGRES: &str = "
            insert into artifact (tenant_id, session_id, user_id, artifact_id, turn_id, call_id, tool, name,
                media_type, size, sha256, content, created_at, path)
            select $1, $2, $3, r.i, r.t, r.k, r.o, r.n, r.m, r.s, r.h, r.c, r.a, r.p
            from json_to_recordset($4::json)
                as r(i text, t text, k text, o text, n text, m text, s bigint, h text, c text, a bigint,
                    p text)";
        let row = |new: &NewArtifact| {
            let artifact = &new.artifact;
            json!({"i": artifact.id, "t": artifact.turn_id, "k": artifact.tool_call_id, "o": artifact.tool,
                "n": artifact.name, "m": artifact.media_type, "s": artifact.size, "h": artifact.sha256,
                "c": new.content, "a": artifact.created_at.0, "p": artifact.path})
        };
        let rows: Vec<_> = new.iter().map(row).collect();
        self.bulk([SQLITE, POSTGRES], session, &rows).await
    }

    /// Artifacts of a session, newest first, older than `before`.
    pub async fn artifacts(
        &mut self,
        session: SessionId,
        before: Option<ArtifactId>,
        limit: u32,
    ) -> Result<Vec<Artifact>, StoreError> {
        const SQL: &str = "
            select artifact_id, session_id, turn_id, call_id, tool, name, media_type, size, sha256, created_at,
                path
            from artifact
            where tenant_id = $1 and session_id = $2 and artifact_id < coalesce($3, 'art_~')
            order by artifact_id desc limit $4";
        let args = [self.tenant.into(), session.into(), before.into(), limit.into()];
        let rows = self.conn.rows(SQL, &args).await?;
        rows.iter().map(artifact).collect()
    }

    /// One artifact with its content.
    pub async fn artifact(
        &mut self,
        session: SessionId,
        id: ArtifactId,
    ) -> Result<Option<(Artifact, Option<String>)>, StoreError> {
        const SQL: &str = "
            select artifact_id, session_id, turn_id, call_id, tool, name, media_type, size, sha256, created_at,
                path, content
            from artifact where tenant_id = $1 and session_id = $2 and artifact_id = $3";
        let args = [self.tenant.into(), session.into(), id.into()];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| Ok((artifact(&row)?, row.opt_text("content")?)))
            .transpose()
    }
}

fn artifact(row: &Row) -> Result<Artifact, StoreError> {
    let path = row.opt_text("path")?;
    Ok(Artifact {
        id: row.id("artifact_id")?,
        session_id: row.id("session_id")?,
        turn_id: row.id("turn_id")?,
        tool_call_id: row.id("call_id")?,
        tool: row.text("tool")?,
        kind: match path {
            Some(_) => ArtifactKind::File,
            None => ArtifactKind::Result,
        },
        path,
        name: row.text("name")?,
        media_type: row.text("media_type")?,
        size: row.int("size")?,
        sha256: row.text("sha256")?,
        created_at: row.timestamp("created_at")?,
    })
}
