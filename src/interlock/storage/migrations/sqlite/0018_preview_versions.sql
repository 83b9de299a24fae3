-- since: 2
-- The version of the items that a preview shows: if they are different when the call runs, it must not take effect.

alter table payloads add column preview_version text;  -- null: nothing that exists was shown
