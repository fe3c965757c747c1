/** The client's types are those of the schemas: this file does not compile where they differ. */
import { test } from "node:test";
import type { Static } from "typebox";
import type * as Client from "../../../../shared/client/types.ts";
import type * as Accounts from "../../../../shared/schemas/account-answers.ts";
import type * as Answers from "../../../../shared/schemas/answers.ts";
import type * as Api from "../../../../shared/schemas/api.ts";

/** Each fits where the other is wanted, down to what is optional. */
type Same<A, B> = [A, B] extends [B, A]
  ? Required<A> extends Required<B>
    ? keyof A extends keyof B
      ? keyof B extends keyof A
        ? true
        : false
      : false
    : false
  : false;

const same = <A, B>(_agree: Same<A, B>): void => {};

test("what is sent", () => {
  same<Client.CreateBody, Static<typeof Api.CreateBody>>(true);
  same<Client.DeleteBody, Static<typeof Api.DeleteBody>>(true);
  same<Client.SnapshotBody, Static<typeof Api.SnapshotBody>>(true);
  same<Client.CloneBody, Static<typeof Api.CloneBody>>(true);
  same<Client.RestoreBody, Static<typeof Api.RestoreBody>>(true);
  same<Client.ExecuteBody, Static<typeof Api.ExecuteBody>>(true);
  same<Client.ExecuteBody, Static<typeof Api.ExecuteAsyncBody>>(true);
  same<Client.PageQuery, Static<typeof Api.PageQuery>>(true);
  same<Client.StatusQuery, Static<typeof Api.StatusQuery>>(true);
  same<Client.LogsQuery, Static<typeof Api.LogsQuery>>(true);
});

test("what is answered", () => {
  same<Client.SandboxInfo, Static<typeof Answers.SandboxAnswer>>(true);
  same<Client.SnapshotInfo, Static<typeof Answers.SnapshotAnswer>>(true);
  same<Client.ExecutionResult, Static<typeof Answers.ExecutionAnswer>>(true);
  same<Client.UploadResult, Static<typeof Answers.UploadedAnswer>>(true);
  same<Client.FileInfo, Static<typeof Answers.FileAnswer>>(true);
  same<Client.SandboxUsage, Static<typeof Answers.StatusAnswer>>(true);
  same<Client.Logs, Static<typeof Answers.LogsAnswer>>(true);
  same<Client.DeletedSandbox, Static<typeof Answers.DeletedSandboxAnswer>>(true);
  same<Client.DeletedSnapshot, Static<typeof Answers.DeletedSnapshotAnswer>>(true);
  same<Client.DeletedAll, Static<typeof Answers.DeletedAllAnswer>>(true);
  same<Client.AccountUsage, Static<typeof Accounts.UsageAnswer>>(true);
  same<Client.ApiKey, Static<typeof Accounts.ApiKeyAnswer>>(true);
  same<Client.Account, Omit<Static<typeof Accounts.SessionAnswer>, "csrf_token">>(true);
});
