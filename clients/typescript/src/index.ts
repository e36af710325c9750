/** A typed client of the REST API of a silas_platform installation. */
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, paths };

/** A refusal: `code` is one of the documented error codes, `status` the HTTP status, `extra` the details by name. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly extra: Record<string, unknown>,
  ) {
    super(message ? `${code}: ${message}` : code);
  }
}

/**
 * `silas("https://desk.example", "sk_…")`: `GET`, `POST`, `PATCH`, `PUT` and `DELETE` take a path of the API and are
 * typed by it. Every answer that is not a success is thrown as an `ApiError`.
 */
export function silas(url: string, key: string): Client<paths> {
  const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });
  client.use({
    async onResponse({ response }) {
      if (!response.ok) throw await refusal(response.clone());
    },
  });
  return client;
}

async function refusal(response: Response): Promise<ApiError> {
  try {
    const { code, message, extra } = (await response.json()).error;
    return new ApiError(response.status, code, message ?? "", extra ?? {});
  } catch {
    return new ApiError(response.status, "no_code", "", {});
  }
}
