package protocol

import (
	"strings"

	"golang.org/x/text/language"
)

// Lang is a language the server speaks: [English] or [Chinese].
type Lang uint8

// The languages shipped.
const (
	English Lang = iota
	Chinese
)

// String returns the BCP 47 tag.
func (l Lang) String() string {
	if l == Chinese {
		return "zh"
	}
	return "en"
}

var langMatcher = language.NewMatcher([]language.Tag{language.English, language.Chinese})

// ParseLang picks a language from a tag or an Accept-Language list (RFC 9110, section 12.5.4). What it can't read
// or does not speak is English. It looks at the first 100 bytes only.
func ParseLang(s string) Lang {
	if len(s) > 100 {
		s = s[:100]
	}
	if s == "" || !strings.ContainsAny(s, "zZ") {
		return English
	}
	tags, _, err := language.ParseAcceptLanguage(s)
	if err != nil {
		return English
	}
	_, i, _ := langMatcher.Match(tags...)
	return Lang(i)
}

var messages = map[Reason][2]string{
	ReasonBadRequest:      {"The request can't be read", "请求有误"},
	ReasonTooLong:         {"The text is too long", "内容太长了"},
	ReasonUnauthenticated: {"Please sign in", "请先登录"},
	ReasonFunds:           {"There is not enough to pay for it", "余额不足"},
	ReasonDeclined:        {"The platform did not take it", "平台未接受"},
	ReasonByBackend:       {"Gifts can't be sent from here", "这里不能直接送礼物"},
	ReasonForbidden:       {"You may not do this here", "没有权限进行此操作"},
	ReasonMuted:           {"You are muted for now", "你已被禁言"},
	ReasonBanned:          {"You are banned from this room", "你已被禁止进入该房间"},
	ReasonNotFound:        {"There is no such thing", "找不到该内容"},
	ReasonConflict:        {"This id was used for something else", "该编号已用于其他内容"},
	ReasonRoomClosed:      {"The room is closed", "直播间已关闭"},
	ReasonRateLimited:     {"Too fast, please wait a moment", "访问过于频繁，请稍后再试"},
	ReasonSlowMode:        {"Slow mode is on, please wait a moment", "慢速模式已开启，请稍后再发"},
	ReasonRepeatedText:    {"You just said that", "请不要重复发送相同内容"},
	ReasonInternal:        {"Something went wrong on our side", "服务器出错了"},
	ReasonUnavailable:     {"Not available right now", "服务暂不可用"},
	ReasonTryLater:        {"Please try again in a moment", "请稍后重试"},
	ReasonRoomBusy:        {"The room is very busy: only you see this message", "房间太热闹了：这条消息仅自己可见"},
	ReasonFolded:          {"Counted in part", "已部分计入"},
}

// Message is what a person reads for a reason, followed by the detail where there is one.
func Message(l Lang, r Reason, detail string) string {
	m := messages[r][l]
	if m == "" {
		m = messages[ReasonInternal][l]
	}
	switch {
	case detail == "":
		return m
	case l == Chinese:
		return m + "：" + detail
	default:
		return m + ": " + detail
	}
}
